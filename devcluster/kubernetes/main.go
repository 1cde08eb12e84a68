// Command kubernetes is all of Kubernetes in one binary: the control plane, the node agents, kubectl, etcd and CoreDNS, compiled from their
// released Go modules. It also has the parts that a cluster without a cloud needs: a volume provisioner, an image registry, a node's first
// process.
//
// The first argument chooses the component, or the name that the binary is called by, so that a link named "kubectl" is kubectl:
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
		fmt.Fprintf(os.Stderr, "run kubernetes: unknown component %q: use one of %s\n", name, strings.Join(names(table), ", "))
		os.Exit(2)
	}
	// Every component parses os.Args by itself, as in its own binary.
	os.Args = append([]string{name}, args...)
	if err := run(args); err != nil {
		fmt.Fprintf(os.Stderr, "run %s: %v\n", name, err)
		os.Exit(1)
	}
}

// component returns the component and its arguments: the name that the binary was called by if that is a component, else the first
// argument.
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
