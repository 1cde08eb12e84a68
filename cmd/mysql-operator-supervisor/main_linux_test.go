package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// environment is the variable that makes this test binary behave as the command.
const environment = "MYSQL_OPERATOR_SUPERVISOR_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(environment) != "" {
		main()
	}
	os.Exit(m.Run()) //nolint:forbidigo // TestMain is main here
}

// firstProcess returns a process 1 that supervises a shell script.
func firstProcess(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/proc/self/exe", t.TempDir(), "sh", "-c", script)
	command.Env = append(os.Environ(), environment+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Geteuid() != 0 {
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
	}
	return command
}

// TestExitStatus: kubelet reads from the exit status how mysqld ended.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		"exit 0":                       0,
		"exit 7":                       7,
		"kill -9 $$":                   137,
		"(sleep 0.1; exit 3) & exit 5": 5,
		"sh -c 'sleep 0.1 & exit 3'; sleep 0.3; exit 6": 6, // the sleep's parent has ended
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			command := firstProcess(t, script)
			start(t, command)
			err := command.Wait()
			if got := exitStatus(err); got != want {
				t.Errorf("exit status %d (%v), want %d", got, err, want)
			}
		})
	}
}

func TestNoSuchProgram(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, arguments := range [][]string{nil, {folder}, {folder, "no-such-program"}, {folder, filepath.Join(folder, "none")}} {
		if status, err := run(arguments); status != statusNotFound || err == nil {
			t.Errorf("run(%q) = %d, %v; want %d and an error", arguments, status, err, statusNotFound)
		}
	}
}

// TestSIGTERMEndsAProgramWithoutHandler: if the shell were process 1, it would not end.
func TestSIGTERMEndsAProgramWithoutHandler(t *testing.T) {
	t.Parallel()
	command := firstProcess(t, "echo started; exec sleep 60")
	waitStarted(t, command)
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case err := <-ended:
		if got := exitStatus(err); got != 128+int(syscall.SIGTERM) {
			t.Errorf("exit status %d (%v), want that of SIGTERM", got, err)
		}
	case <-time.After(30 * time.Second):
		t.Error("SIGTERM did not end the program")
	}
}

// TestSignalsReachTheProgram: a program with a handler decides how it ends.
func TestSignalsReachTheProgram(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "USR1": syscall.SIGUSR1,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := firstProcess(t, "trap 'exit 42' "+name+"; echo started; while :; do sleep 0.05; done")
			waitStarted(t, command)
			if err := command.Process.Signal(sent); err != nil {
				t.Fatal(err)
			}
			if err := command.Wait(); exitStatus(err) != 42 {
				t.Errorf("the program ended with %v, want the status of its handler", err)
			}
		})
	}
}

func waitStarted(t *testing.T, command *exec.Cmd) {
	t.Helper()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, command)
	if _, err := io.ReadFull(out, make([]byte, len("started\n"))); err != nil {
		t.Fatal(err)
	}
}

// start starts the command, and watches it as an agent does. It skips the test if the user may not create a PID namespace.
func start(t *testing.T, command *exec.Cmd) {
	t.Helper()
	err := command.Start()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("makes a PID namespace, which is not permitted here")
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for t.Context().Err() == nil {
			_ = supervisor.Watch(t.Context(), supervisor.Socket(command.Args[1]), func(supervisor.State) {})
			<-time.After(time.Millisecond)
		}
	}()
}

func exitStatus(err error) int {
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}
