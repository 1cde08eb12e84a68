// Command mysql-operator-supervisor is the first process of a container that runs mysqld (reconcile/mysql/supervisor). It exits with the
// status of the last mysqld.
//
// Linux drops a signal to process 1 if the process has no handler for it (pid_namespaces(7)). mysqld installs its handlers a second or more
// after its start. If mysqld were process 1, it would lose a SIGTERM during that time, and its Pod would stay until the grace period ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// statusNotFound is the exit status of a shell that cannot find a program (POSIX, "Exit Status for Commands").
const statusNotFound = 127

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, supervisor.Program+": [ERROR] "+err.Error()) // in the format of mysqld's errors
	}
	os.Exit(status)
}

// run supervises the program that the arguments name, after the run folder. It returns the exit status of the program's last process.
func run(arguments []string) (int, error) {
	if len(arguments) < 2 {
		return statusNotFound, errors.New("name the run folder, and mysqld with its arguments")
	}
	folder, command := arguments[0], arguments[1:]
	file, err := exec.LookPath(command[0])
	if err != nil {
		return statusNotFound, fmt.Errorf("start mysqld: %w", err)
	}
	// Before mysqld starts: a signal that comes meanwhile is kept.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, handled()...)
	supervised := supervisor.Supervisor{Command: append([]string{file}, command[1:]...), RunDir: folder, Log: os.Stderr, Wait: reap, Heard: new(supervisor.Connections).Heard}
	return supervised.Run(context.Background(), signals)
}

// handled returns the signals that end mysqld, or to which it reacts (MySQL manual, "Unix Signal Handling in MySQL").
func handled() []os.Signal {
	return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}
}

// reap waits, as process 1 must, for all processes whose parent has ended, until the program ends.
func reap(program int) (syscall.WaitStatus, error) {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return status, err
		case ended == program:
			return status, nil
		}
	}
}
