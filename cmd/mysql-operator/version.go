package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
)

// version is set when the binary is linked (-X main.version=…); the build knows it, the code cannot.
var version string

// programVersion returns what the build was told, or else what Go recorded of the source.
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
