package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
)

// pulsarProgram connects to Apache Pulsar. It is a separate program, because its client library would cost the operator memory for nothing
// (docs/adr/0004-pulsar-in-a-program-of-its-own.md). The same is true of protocol.Program and the SDKs of object stores
// (docs/adr/0016-a-program-for-each-place.md).
const pulsarProgram = "mysql-operator-pulsar"

// runCompanion returns a subcommand that another program in this program's folder implements. The process replaces itself with that
// program, which then receives the signals and sets the exit status.
func runCompanion(name, subcommand string) func(context.Context, cli.Process) error {
	return func(_ context.Context, p cli.Process) error {
		program, err := companion(name)
		if err != nil {
			return err
		}
		arguments := append([]string{program, subcommand}, p.Arguments...)
		return fmt.Errorf("run %s: %w", program, syscall.Exec(program, arguments, os.Environ())) //nolint:gosec // a fixed name in the folder of this program
	}
}

// companion finds a program in the folder of this one.
func companion(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	program := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find %s: the operator's image contains it, and make build puts it next to bin/mysql-operator: %w", program, err)
	}
	return program, nil
}
