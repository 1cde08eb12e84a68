package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFingerprintFollowsWhatTheBinaryIsMadeOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file    string
		content string
		rebuild bool
	}{
		"a changed source file":     {file: "main.go", content: "package main // changed", rebuild: true},
		"a new source file":         {file: "sub/new.go", content: "package sub", rebuild: true},
		"another release in go.mod": {file: "go.mod", content: "module m // changed", rebuild: true},
		"a test is not in a binary": {file: "main_test.go", content: "package main", rebuild: false},
		"neither is documentation":  {file: "README.md", content: "hello", rebuild: false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module := t.TempDir()
			write(t, module, "go.mod", "module m\n\ngo 1.26")
			write(t, module, "main.go", "package main")
			before := mustFingerprint(t, module)
			if mustFingerprint(t, module) != before {
				t.Fatal("two fingerprints of the same files differ")
			}
			write(t, module, tc.file, tc.content)
			if changed := mustFingerprint(t, module) != before; changed != tc.rebuild {
				t.Errorf("rebuilds: %t, want %t", changed, tc.rebuild)
			}
		})
	}
}

// An interrupted go command leaves its work in GOTMPDIR. Not parallel: the test puts another go command on PATH.
func TestAnInterruptedBuildLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "go", "#!/bin/sh\nmkdir \"$GOTMPDIR/go-build1\" && : >\"$GOTMPDIR/go-build1/link\" && kill -INT $$\n")
	if err := os.Chmod(filepath.Join(dir, "go"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	out := t.TempDir()
	if err := goBuild(t.Context(), t.TempDir(), filepath.Join(out, "kubernetes"), ".", nil); err == nil || !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("error %v, want one about the interrupt", err)
	}
	if left, err := os.ReadDir(out); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestKubernetesVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "go.mod", "require (\n\tk8s.io/kubectl v0.0.0\n\tk8s.io/kubernetes v1.36.3\n)\n\nreplace k8s.io/api => k8s.io/api v0.36.3\n")
	got, err := kubernetesVersion(filepath.Join(dir, "go.mod"))
	if err != nil || got != "v1.36.3" {
		t.Errorf("got %q, %v", got, err)
	}
	write(t, dir, "go.mod", "module m\n")
	if got, err := kubernetesVersion(filepath.Join(dir, "go.mod")); err == nil {
		t.Errorf("found %q in a module without Kubernetes", got)
	}
}

func TestVersionFlags(t *testing.T) {
	t.Parallel()
	var server []string
	for _, flag := range versionFlags("v1.36.3") {
		if rest, found := strings.CutPrefix(flag, "-X k8s.io/component-base/version."); found {
			server = append(server, rest)
		}
	}
	want := []string{"gitVersion=v1.36.3", "gitTreeState=clean", "gitCommit=unknown", "gitMajor=1", "gitMinor=36"}
	if diff := cmp.Diff(want, server); diff != "" {
		t.Error(diff)
	}
}

func mustFingerprint(t *testing.T, module string) string {
	t.Helper()
	sum, err := fingerprint(t.Context(), module)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func write(t *testing.T, dir, file, content string) {
	t.Helper()
	path := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
