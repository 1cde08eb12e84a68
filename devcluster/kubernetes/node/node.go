// Package node is the first process of a node: process 1 in its own namespaces, like the init of a machine.
//
// A node's mounts, network, host name and processes are in namespaces that end with this process. So killing it is like a power failure:
// the kernel kills all processes of the node at once, and nothing of the node is left on the machine.
package node

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// Config has the processes and settings of a node. The launcher writes it.
type Config struct {
	Hostname string `json:"hostname"`
	// Temporary are folders on which an empty memory filesystem is mounted inside the node.
	Temporary []string `json:"temporary"`
	// Binds are bind mounts inside the node: target → source. The targets may be in temporary folders.
	Binds map[string]string `json:"binds"`
	// Sysctls are set after the node's network exists: path under /proc/sys → value.
	Sysctls   map[string]string `json:"sysctls"`
	Processes []Process         `json:"processes"`
}

// Run prepares the node and keeps its processes running. It returns only on an error or a signal.
//
// The launcher, which created the namespaces, connects the network from outside, and then writes a line to standard input. If it dies
// before that, the node ends, too.
func Run(args []string) error {
	flags := flag.NewFlagSet("node", flag.ExitOnError)
	file := flags.String("config", "", "JSON file with the processes and settings of the node")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := readConfig(*file)
	if err != nil {
		return err
	}
	if os.Getpid() != 1 {
		return errors.New("start node: it must be process 1 of its own PID namespace: start it with the dev cluster's launcher")
	}
	if err := prepare(config); err != nil {
		return err
	}
	if _, err := io.ReadFull(os.Stdin, make([]byte, 1)); err != nil {
		return fmt.Errorf("start node: the launcher ended before it connected the network: %w", err)
	}
	if err := setSysctls(config.Sysctls); err != nil {
		return err
	}
	return supervise(config.Processes)
}

func readConfig(file string) (Config, error) {
	var config Config
	content, err := os.ReadFile(file)
	if err != nil {
		return config, fmt.Errorf("read node config: %w", err)
	}
	if err := json.Unmarshal(content, &config); err != nil {
		return config, fmt.Errorf("read node config %s: %w", file, err)
	}
	return config, nil
}

// prepare sets up the node's filesystem and its host name.
func prepare(config Config) error {
	// Mounts of the machine appear in the node, but not the other way round. Inside the node mounts propagate, as mountPropagation needs.
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
		return err
	}
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	for _, dir := range config.Temporary {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("prepare node: %w", err)
		}
		if err := mount("tmpfs", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755"); err != nil {
			return err
		}
	}
	for target, source := range config.Binds {
		if err := errors.Join(os.MkdirAll(source, 0o755), os.MkdirAll(target, 0o755)); err != nil {
			return fmt.Errorf("prepare node: %w", err)
		}
		if err := mount(source, target, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return err
		}
	}
	// Programs keep their locks in /run/lock; a tmpfs on /run hides the machine's folder.
	if err := os.MkdirAll("/run/lock", 0o755); err != nil {
		return fmt.Errorf("prepare node: %w", err)
	}
	if err := syscall.Sethostname([]byte(config.Hostname)); err != nil {
		return fmt.Errorf("name node %s: %w", config.Hostname, err)
	}
	return nil
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}

func setSysctls(values map[string]string) error {
	for name, value := range values {
		path := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			return fmt.Errorf("set %s=%s: %w", name, value, err)
		}
	}
	return nil
}
