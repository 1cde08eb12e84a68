// Package build compiles Kubernetes from the nested Go module. It compiles again only if the files of that module or the Go release
// changed.
package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/filelock"
)

const (
	// usual is the duration of a build, as shown to the user.
	usual = "about 5 minutes on two cores the first time, seconds once the Go build cache is warm"
	// reportEvery is how often a running build reports its duration.
	reportEvery = 15 * time.Second
)

// Binaries are the results of a build.
type Binaries struct {
	Kubernetes string // every component, in one binary
	Pause      string // the only file of the pods' sandbox image
	Version    string // of Kubernetes, like v1.36.1
}

// Ensure returns the binaries, and compiles them first if needed. If two processes call it at once, the second waits for the first.
func Ensure(ctx context.Context, module, out string, progress io.Writer) (Binaries, error) {
	version, err := kubernetesVersion(filepath.Join(module, "go.mod"))
	if err != nil {
		return Binaries{}, err
	}
	b := Binaries{Kubernetes: filepath.Join(out, "kubernetes"), Pause: filepath.Join(out, "pause"), Version: version}
	want, err := fingerprint(ctx, module)
	if err != nil {
		return Binaries{}, err
	}
	stamp := filepath.Join(out, "kubernetes.fingerprint")
	if b.present() && read(stamp) == want {
		return b, nil
	}
	unlock, err := filelock.Acquire(ctx, filepath.Join(out, "build.lock"), func() {
		fmt.Fprintln(progress, "waiting for another build of Kubernetes to finish")
	})
	if err != nil {
		return Binaries{}, fmt.Errorf("build Kubernetes: %w", err)
	}
	defer unlock()
	if b.present() && read(stamp) == want {
		return b, nil
	}
	fmt.Fprintf(progress, "building Kubernetes %s from source: %s\n", version, usual)
	begun := time.Now()
	if err := compile(ctx, module, b, progress); err != nil {
		return Binaries{}, err
	}
	if err := os.WriteFile(stamp, []byte(want), 0o644); err != nil {
		return Binaries{}, fmt.Errorf("build Kubernetes: %w", err)
	}
	fmt.Fprintf(progress, "built Kubernetes %s in %s\n", version, time.Since(begun).Round(time.Second))
	return b, nil
}

func (b Binaries) present() bool {
	_, kubernetes := os.Stat(b.Kubernetes)
	_, pause := os.Stat(b.Pause)
	return kubernetes == nil && pause == nil
}

func compile(ctx context.Context, module string, b Binaries, progress io.Writer) error {
	reporting, stop := context.WithCancel(ctx)
	var reporter sync.WaitGroup
	reporter.Go(func() { report(reporting, progress) })
	defer reporter.Wait() // report must not write to progress after the build
	defer stop()
	if err := goBuild(ctx, module, b.Pause, "./pause", nil); err != nil {
		return err
	}
	return goBuild(ctx, module, b.Kubernetes, ".", versionFlags(b.Version))
}

// report reports from time to time that the build is still running.
func report(ctx context.Context, progress io.Writer) {
	begun := time.Now()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			fmt.Fprintf(progress, "  still building, %s so far\n", time.Since(begun).Round(time.Second))
		}
	}
}

// goBuild compiles into a temporary file and renames it, so that a running cluster keeps the binary it was started from.
func goBuild(ctx context.Context, module, target, pkg string, linkerFlags []string) error {
	temporary, work := target+".new", target+".work"
	// An interrupted go command leaves its working folder: up to 150 MB.
	if err := errors.Join(os.RemoveAll(work), os.MkdirAll(work, 0o755)); err != nil {
		return fmt.Errorf("build Kubernetes: %w", err)
	}
	defer os.RemoveAll(work)
	flags := strings.Join(append([]string{"-s", "-w"}, linkerFlags...), " ")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", temporary, pkg)
	command.Dir = module
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOTMPDIR="+work)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("build Kubernetes: no go command on PATH: install Go, then run this again")
	}
	if err != nil {
		return fmt.Errorf("build Kubernetes: go build %s: %w\n%s", pkg, err, lastLines(output.String(), 20))
	}
	if err := os.Rename(temporary, target); err != nil {
		return fmt.Errorf("build Kubernetes: %w", err)
	}
	return nil
}

// versionFlags return the linker flags that set the release in the binary. Without them, clients receive a version that they cannot parse.
func versionFlags(version string) []string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	packages := []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"}
	values := []string{"gitVersion=" + version, "gitTreeState=clean", "gitCommit=unknown", "gitMajor=" + parts[0], "gitMinor=" + parts[1]}
	flags := make([]string, 0, len(packages)*len(values))
	for _, pkg := range packages {
		for _, value := range values {
			flags = append(flags, "-X "+pkg+"."+value)
		}
	}
	return flags
}

// fingerprint identifies the inputs of a build: the module's files and the Go release that compiles them.
func fingerprint(ctx context.Context, module string) (string, error) {
	sum := sha256.New()
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH")
	command.Dir = module
	toolchain, err := command.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("build Kubernetes: no go command on PATH: install Go, then run this again")
	}
	if err != nil {
		return "", fmt.Errorf("build Kubernetes: get the version of go: %w", err)
	}
	sum.Write(toolchain)
	files, err := sources(module)
	if err != nil {
		return "", fmt.Errorf("build Kubernetes: read its source: %w", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(module, file))
		if err != nil {
			return "", fmt.Errorf("build Kubernetes: read its source: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n", file, len(content))
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// sources returns the module's files that are compiled into a binary, sorted.
func sources(module string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(module, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		isSource := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if err != nil || entry.IsDir() || (!isSource && name != "go.mod" && name != "go.sum") {
			return err
		}
		relative, err := filepath.Rel(module, path)
		files = append(files, relative)
		return err
	})
	slices.Sort(files)
	return files, err
}

var requirement = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\d+\.\d+\.\d+\S*)`)

func kubernetesVersion(gomod string) (string, error) {
	content, err := os.ReadFile(gomod)
	if err != nil {
		return "", fmt.Errorf("find the Kubernetes release: %w", err)
	}
	match := requirement.FindSubmatch(content)
	if match == nil {
		return "", fmt.Errorf("find the Kubernetes release: %s requires no k8s.io/kubernetes", gomod)
	}
	return string(match[1]), nil
}

func read(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return "" // the file does not exist before the first build
	}
	return string(content)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
