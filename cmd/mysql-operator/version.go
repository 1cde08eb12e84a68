package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
)

// version is set when the binary is linked (-X main.version=…).
var version string

// programVersion returns the version set by the build, or else the one that Go recorded.
func programVersion() string {
	if version != "" {
		return version
	}
	info, known := debug.ReadBuildInfo()
	if !known || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

func runVersion(_ context.Context, p cli.Process) error {
	_, err := fmt.Fprintf(p.Out, "mysql-operator %s (%s, %s/%s)\n", programVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
