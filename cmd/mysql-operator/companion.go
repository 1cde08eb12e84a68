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

// pulsarProgram speaks to Apache Pulsar: its client library would cost the operator memory that it has no use for
// (docs/adr/0004-pulsar-in-a-program-of-its-own.md). The same holds for transfer.Program and the SDKs of object stores
// (docs/adr/0016-a-program-for-each-place.md).
const pulsarProgram = "mysql-operator-pulsar"

// runCompanion is a subcommand of another program in the folder of this one. This process becomes that program, which gets the signals and
// the exit status.
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
		return "", fmt.Errorf("find %s: it is in the operator's image, and beside bin/mysql-operator after make build: %w", program, err)
	}
	return program, nil
}
