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

// pulsarProgram lies beside this program, and is what speaks to Apache Pulsar: its client library would cost the operator and every agent
// memory that they have no use for (docs/adr/0004-pulsar-in-a-program-of-its-own.md).
const pulsarProgram = "mysql-operator-pulsar"

// runPulsar is the subcommands consume and produce: this process becomes the other program, which gets the signals and the exit status.
func runPulsar(name string) func(context.Context, cli.Process) error {
	return func(_ context.Context, p cli.Process) error {
		program, err := besides(pulsarProgram)
		if err != nil {
			return err
		}
		arguments := append([]string{program, name}, p.Arguments...)
		return fmt.Errorf("run %s: %w", program, syscall.Exec(program, arguments, os.Environ())) //nolint:gosec // a fixed name beside this program
	}
}

// besides finds a program in the folder of this one.
func besides(name string) (string, error) {
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
