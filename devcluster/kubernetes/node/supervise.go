package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	restartDelay = time.Second
	// needWait bounds the wait for a socket that a process needs. After it the process is started anyway, and reports the problem itself.
	needWait = 30 * time.Second
)

// Process is a program the node keeps running.
type Process struct {
	Name string   `json:"name"`
	Args []string `json:"args"` // the first is the program's path
	Env  []string `json:"env"`  // KEY=VALUE, all it gets
	Log  string   `json:"log"`  // file its output is appended to
	// Needs is a unix socket that must answer before the process is started.
	Needs string `json:"needs,omitempty"`
}

// supervise starts the processes and restarts those that end. Process 1 also inherits every orphan of the node and must reap it, so one
// loop waits for all children, known or not.
func supervise(processes []Process) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)

	running := map[int]Process{}
	due := make(chan Process, len(processes))
	for _, p := range processes {
		go startWhenReady(p, due)
	}
	for {
		select {
		case <-stop:
			return nil
		case p := <-due:
			pid, err := start(p)
			if err != nil {
				return err
			}
			running[pid] = p
		case <-ended:
			for _, p := range reap(running) {
				time.AfterFunc(restartDelay, func() { startWhenReady(p, due) })
			}
		}
	}
}

// startWhenReady passes the process to the loop when the socket it needs answers, or when the wait is over.
func startWhenReady(p Process, due chan<- Process) {
	defer func() { due <- p }()
	if p.Needs == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), needWait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var dialer net.Dialer
		connection, err := dialer.DialContext(ctx, "unix", p.Needs)
		if err == nil {
			_ = connection.Close()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func start(p Process) (int, error) {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", p.Name, err)
	}
	defer log.Close()
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", p.Name, err)
	}
	defer nothing.Close()
	pid, err := syscall.ForkExec(p.Args[0], p.Args, &syscall.ProcAttr{
		Env:   p.Env,
		Files: []uintptr{nothing.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", p.Name, err)
	}
	return pid, nil
}

// reap reaps all children that have ended and returns the processes to restart.
func reap(running map[int]Process) []Process {
	var again []Process
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if pid <= 0 || err != nil {
			return again
		}
		p, known := running[pid]
		if !known {
			continue
		}
		delete(running, pid)
		fmt.Fprintf(os.Stderr, "%s: %s ended (exit code %d, signal %d), restarting it in %s\n",
			time.Now().UTC().Format(time.RFC3339), p.Name, status.ExitStatus(), status.Signal(), restartDelay)
		again = append(again, p)
	}
}
