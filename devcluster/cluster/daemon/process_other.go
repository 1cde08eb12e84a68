//go:build !linux

package daemon

import "syscall"

// The launcher refuses to run elsewhere than on Linux before it gets here;
// these let it compile, to say so.

func processAttributes(bool) *syscall.SysProcAttr { return nil }

func signalProcess(pid int, signal syscall.Signal) error { return syscall.ENOSYS }

func startTime(int) (uint64, bool) { return 0, false }

func bootID() string { return "" }
