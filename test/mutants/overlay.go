package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// mutant is a rule of a file that is broken: one text in place of another. A file without a folder is one of package replication, others
// have their folder beside that package's.
type mutant struct {
	name       string
	file       string
	text, with string
}

// folder is that of the package that has the rule.
func (m mutant) folder() string {
	if folder := filepath.Dir(m.file); folder != "." {
		return filepath.Join(filepath.Dir(replicationFolder), folder)
	}
	return replicationFolder
}

// path is that of the file with the rule.
func (m mutant) path() string { return filepath.Join(m.folder(), filepath.Base(m.file)) }

// apply returns the file with the mutant. The text must be there once. Without a text, the file stays as it is.
func (m mutant) apply(source string) (string, error) {
	if count := strings.Count(source, m.text); count != 1 && m.text != "" {
		return "", fmt.Errorf("%s has the text %d times, not once: %s", m.file, count, m.text)
	}
	return strings.Replace(source, m.text, m.with, 1), nil
}

// overlay writes the mutant, and the file that makes the go command build it (go help build, -overlay).
func (m mutant) overlay(folder string) (string, error) {
	path, err := filepath.Abs(m.path())
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	broken, err := m.apply(string(source))
	if err != nil {
		return "", err
	}
	instead := filepath.Join(folder, filepath.Base(m.file))
	if err := os.WriteFile(instead, []byte(broken), 0o600); err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]map[string]string{"Replace": {path: instead}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, content, 0o600)
}

// execute runs a program in a folder, and returns what it prints.
func execute(ctx context.Context, folder, name string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = folder
	said, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("run %s: %w", filepath.Base(name), err)
	}
	return string(said), err
}

// violation returns the first line in which a test says what is wrong.
func violation(said string) string {
	const widest = 160
	line := regexp.MustCompile(`(?m)^ +\w+_test\.go:\d+: (.*)$|^panic: .*$`).FindString(said)
	line = strings.TrimSpace(line)
	return line[:min(len(line), widest)]
}
