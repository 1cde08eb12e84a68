// Command mysql-operator-pid1 is the first process of a container that runs mysqld. It starts a program, forwards signals to it, and exits
// with its status.
//
// Linux drops a signal to process 1 if the process has no handler for it (pid_namespaces(7)). mysqld installs its handlers a second or more
// after its start. If mysqld were process 1, it would lose a SIGTERM during that time, and its Pod would stay until the grace period ends.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// The exit statuses of a shell (POSIX, "Exit Status for Commands").
const (
	statusNotFound = 127
	statusSignal   = 128
)

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "mysql-operator-pid1: [ERROR] "+err.Error()) // in the format of mysqld's errors
	}
	os.Exit(status)
}

// run starts a program and waits until it ends. It returns the program's exit status, or 128 and the number of the signal that ended it.
func run(command []string) (int, error) {
	if len(command) == 0 {
		return statusNotFound, errors.New("name the program to start")
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return statusNotFound, fmt.Errorf("start the program: %w", err)
	}
	// Before the program starts: a signal that comes meanwhile is kept for it.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn()...)
	program, err := os.StartProcess(path, command, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}}) //nolint:gosec // it is there to start what it is told
	if err != nil {
		return statusNotFound, fmt.Errorf("start the program: %w", err)
	}
	go func() {
		for received := range signals {
			_ = program.Signal(received) // it fails if the program has ended; then this process ends too
		}
	}()
	return reap(program.Pid)
}

// passedOn returns the signals that end mysqld, or to which it reacts (MySQL manual, "Unix Signal Handling in MySQL").
func passedOn() []os.Signal {
	return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}
}

// reap waits, as process 1 must, for all processes whose parent has ended, until the program ends.
func reap(program int) (int, error) {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, fmt.Errorf("wait for the program: %w", err)
		case ended != program:
		case status.Signaled():
			return statusSignal + int(status.Signal()), nil
		default:
			return status.ExitStatus(), nil
		}
	}
}
