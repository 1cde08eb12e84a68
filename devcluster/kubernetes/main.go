// Command kubernetes is a whole Kubernetes in one binary: the control plane,
// the node agents, kubectl, etcd and CoreDNS, compiled from their released Go
// modules, and the few small parts a cluster without a cloud needs beside them
// (a volume provisioner, an image registry, a node's first process).
//
// The component is chosen by the first argument, or by the name the binary is
// called under, so that a link called "kubectl" is kubectl:
//
//	kubernetes kube-apiserver --etcd-servers=…
//	kubectl get pods
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	table := components()
	name, args := component(table, os.Args)
	run, known := table[name]
	if !known {
		fmt.Fprintf(os.Stderr, "run kubernetes: no component %q: use one of %s\n", name, strings.Join(names(table), ", "))
		os.Exit(2)
	}
	// Every component parses os.Args by itself, as it would in a binary of its own.
	os.Args = append([]string{name}, args...)
	if err := run(args); err != nil {
		fmt.Fprintf(os.Stderr, "run %s: %v\n", name, err)
		os.Exit(1)
	}
}

// component picks the component and its arguments: the name the binary was
// called under if that is one, else the first argument.
func component(table map[string]runner, argv []string) (name string, args []string) {
	called := filepath.Base(argv[0])
	if _, known := table[called]; known {
		return called, argv[1:]
	}
	if len(argv) < 2 {
		return "", nil
	}
	return argv[1], argv[2:]
}

func names(table map[string]runner) []string {
	out := make([]string, 0, len(table))
	for name := range table {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
