// Package cli has what the operator, the members' program and the backup program share: subcommands, flags and their environment variables,
// exit statuses, logs and memory settings.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

// Process is what a subcommand gets from its process.
type Process struct {
	Arguments   []string
	Environment func(name string) string
	Out, Err    io.Writer
}

// Command is a subcommand.
type Command struct {
	Name, Usage, Summary string
	Run                  func(ctx context.Context, p Process) error
}

// Program is a program with subcommands.
type Program struct {
	Name string
	// Intro and Outro surround the list of subcommands in its help.
	Intro, Outro string
	Commands     []Command
	// Default is the subcommand that runs if the user names none; if empty, the user must name one.
	Default string
}

// The exit statuses: 0 is success, ExitFailure an error, ExitUsage a wrong command line.
const (
	ExitFailure = 1
	ExitUsage   = 2
)

// Main runs the program in this process until it ends or gets SIGINT or SIGTERM, and returns its exit status.
func (p Program) Main() int {
	LimitGarbage(os.Getenv, gcPercent)
	boundMemory(os.Getenv, os.DirFS(controlGroup))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // it is main
	defer stop()
	return p.Execute(ctx, Process{Arguments: os.Args[1:], Environment: os.Getenv, Out: os.Stdout, Err: os.Stderr})
}

// Execute runs the subcommand that the arguments name and returns the exit status.
func (p Program) Execute(ctx context.Context, in Process) int {
	name := p.Default
	if len(in.Arguments) > 0 && (p.Default == "" || !strings.HasPrefix(in.Arguments[0], "-")) {
		name, in.Arguments = in.Arguments[0], in.Arguments[1:]
	}
	if name == "help" {
		fmt.Fprint(in.Out, p.help())
		return 0
	}
	for _, one := range p.Commands {
		if one.Name == name {
			return p.status(one.Run(ctx, in), in.Err)
		}
	}
	fmt.Fprintf(in.Err, "%s: no subcommand %q\n\n%s", p.Name, name, p.help())
	return ExitUsage
}

// StatusError ends the program with an exit status, and with a message if there is a cause.
type StatusError struct {
	Status int
	Cause  error
}

func (e *StatusError) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Cause.Error()
}

func (e *StatusError) Unwrap() error { return e.Cause }

func (p Program) status(err error, out io.Writer) int {
	own, usage := (*StatusError)(nil), (*usageError)(nil)
	status := ExitFailure
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return 0
	case errors.As(err, &own):
		err, status = own.Cause, own.Status
	case errors.As(err, &usage):
		status = ExitUsage
	}
	if err != nil {
		fmt.Fprintf(out, "%s: %v\n", p.Name, err)
	}
	return status
}

func (p Program) help() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\n", p.Intro)
	for _, one := range p.Commands {
		fmt.Fprintf(&text, "  %-60s %s\n", one.Usage, one.Summary)
	}
	fmt.Fprintf(&text, "\n%s\n", p.Outro)
	return text.String()
}
