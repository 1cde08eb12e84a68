//go:build !linux

package daemon

import "syscall"

// The launcher runs only on Linux and refuses to run elsewhere before it calls these functions. They let it compile there.

func processAttributes(bool) *syscall.SysProcAttr { return nil }

func signalProcess(pid int, signal syscall.Signal) error { return syscall.ENOSYS }

func startTime(int) (uint64, bool) { return 0, false }

func bootID() string { return "" }
