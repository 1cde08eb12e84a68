// Package hack holds the scripts that the Makefile runs; here is what they promise on a bad day.
package hack

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// script is a run of one of the repository's scripts, with programs of the machine replaced by others.
type script struct {
	command *exec.Cmd
	output  strings.Builder
}

// run prepares the script; programs are shell texts by name, which find the folder that they may write to in $NOTES.
func run(t *testing.T, notes string, programs map[string]string, arguments ...string) *script {
	t.Helper()
	bin := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := &script{command: exec.CommandContext(t.Context(), arguments[0], arguments[1:]...)}
	s.command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "NOTES="+notes)
	s.command.Stdout, s.command.Stderr = &s.output, &s.output
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return s
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}

const root = "[ \"$1\" = -u ] && echo 0\n"

// A second clone installs packages as well, or a machine that has just been started does its daily update.
func TestNeedWaitsForAnotherAptGet(t *testing.T) {
	t.Parallel()
	notes := t.TempDir()
	const aptGet = `echo "$*" >>"$NOTES/calls"
[ "$(wc -l <"$NOTES/calls")" -gt 1 ] && exit 0
echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"
exit 100
`
	s := run(t, notes, map[string]string{"id": root, "apt-get": aptGet, "sleep": ""}, "./need", "no-such-command=one,two", "sh=none", "/no/such/file=three", "/=none")
	if err := s.command.Run(); err != nil {
		t.Fatalf("%v: %s", err, s.output.String())
	}
	want := "-qq update\n-qq update\n-qq install --yes --no-install-recommends one two three\n"
	if got := read(t, filepath.Join(notes, "calls")); got != want {
		t.Errorf("apt-get was called with\n%swant\n%s", got, want)
	}
}

func TestNeedTellsWhyAptGetFailed(t *testing.T) {
	t.Parallel()
	s := run(t, t.TempDir(), map[string]string{"id": root, "apt-get": "echo 'E: Unable to locate package one'; exit 100\n"}, "./need", "no-such-command=one")
	err := s.command.Run()
	if got := s.output.String(); err == nil || !strings.Contains(got, "Unable to locate") || !strings.Contains(got, "could not install one") {
		t.Errorf("%v: %s", err, got)
	}
}

// Not every shell runs its EXIT trap when a signal interrupts it. Without another trap, each interrupted build would leave 100 MB.
func TestAnInterruptedImageBuildLeavesNothing(t *testing.T) {
	t.Parallel()
	notes, out := t.TempDir(), t.TempDir()
	const buildah = "mkdir -p \"$2\" && : >\"$2/layer\" && : >\"$NOTES/started\" && exec sleep 60\n"
	s := run(t, notes, map[string]string{"buildah": buildah}, "../images/operator/build", "mysql-operator:latest", "v1", filepath.Join(out, "mysql-operator.tar"))
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.command.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for started := false; !started; {
		select {
		case err := <-ended:
			t.Fatalf("it ended by itself: %v: %s", err, s.output.String())
		case <-tick.C:
			_, err := os.Stat(filepath.Join(notes, "started"))
			started = err == nil
		}
	}
	if err := syscall.Kill(-s.command.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("an interrupted build counts as done")
	}
	if left, err := os.ReadDir(out); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// makes runs make where the module proxy answers go like that, and returns what programs were called and what was said.
func makes(t *testing.T, answer string, arguments ...string) (calls, output string, err error) {
	t.Helper()
	notes := t.TempDir()
	programs := map[string]string{
		"go":     `[ "$1" = mod ] || exit 0; echo "go $*" >>"$NOTES/calls"; ` + answer,
		"docker": `echo "docker $*" >>"$NOTES/calls"`,
	}
	command := []string{"env", "-u", "MAKEFLAGS", "-u", "MFLAGS", "-u", "MAKELEVEL", "-u", "GOFLAGS", "make", "-C", "..", "CONTAINER_TOOL=docker", "IMG=registry.example/operator:v1"}
	s := run(t, notes, programs, append(command, arguments...)...)
	err = s.command.Run()
	return read(t, filepath.Join(notes, "calls")), s.output.String(), err
}

// An image without a client library starts, and whoever has a VmGroup or a PulsarConsumer finds out only then.
func TestNoImageIsPushedThatLacksAKind(t *testing.T) {
	t.Parallel()
	const pushed = "docker push registry.example/operator:v1\n"
	const refused, unreachable = "echo 'reading $3: 403 Forbidden' >&2; exit 1", "echo 'dial tcp: no route to host' >&2; exit 1"
	for story, test := range map[string]struct {
		answer    string
		arguments []string
		want      bool
	}{
		"all of them are there":        {"exit 0", nil, true},
		"the proxy is unreachable":     {unreachable, nil, true},
		"one is refused":               {refused, nil, false},
		"one is refused, and it is so": {refused, []string{"PARTIAL=1"}, true},
		"PARTIAL of another value":     {refused, []string{"PARTIAL=0"}, false},
		"left out by hand":             {"exit 0", []string{"GOFLAGS=-tags=without_vcenter"}, false},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			calls, output, err := makes(t, test.answer, append(test.arguments, "docker-push")...)
			if isPushed := strings.Contains(calls, pushed); isPushed != test.want || (err == nil) != test.want {
				t.Errorf("pushed: %t, %v: %s", isPushed, err, output)
			}
			if !test.want && (!strings.Contains(output, "not pushed") || !strings.Contains(output, "without_vcenter") || !strings.Contains(output, "PARTIAL=1")) {
				t.Errorf("it does not say why: %s", output)
			}
		})
	}
}

// The proxy may be slow or out of reach, and who only asks for help does not wait for it.
func TestHelpAsksNoModuleProxy(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{nil, {"help"}, {"--dry-run", "clean"}, {"--dry-run", "undeploy"}, {"--dry-run", "mysql-image"}} {
		if calls, output, err := makes(t, "exit 0", arguments...); err != nil || calls != "" {
			t.Errorf("make %v: %v: it calls %s: %s", arguments, err, calls, output)
		}
	}
	if calls, output, err := makes(t, "exit 0", "--dry-run", "help", "build"); err != nil || !strings.Contains(calls, "govmomi") {
		t.Errorf("make build: %v: it calls %s: %s", err, calls, output)
	}
}
