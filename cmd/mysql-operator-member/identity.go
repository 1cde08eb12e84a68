package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// runInit is the subcommand init: the first init container of a member's Pod.
func runInit(tell io.Writer) error {
	who, err := memberIdentity()
	if err != nil {
		return err
	}
	layout := agent.PodLayout()
	if who.Given, err = given(); err != nil {
		return err
	}
	if who.Given.Volume, err = layout.VolumeSize(); err != nil {
		// A volume that does not tell its size can hold data all the same: mysqld's own settings of sizes stay.
		fmt.Fprintf(tell, "mysql-operator: the size of the volume is not known: %v\n", err)
	}
	who.Tell = tell
	if err := agent.InstallPID1(agent.ProgramDir); err != nil {
		return err
	}
	return agent.Prepare(layout, who)
}

// runAgent is the subcommand agent: the sidecar of a member's Pod. It ends when the context does.
func runAgent(ctx context.Context, log logr.Logger) error {
	sidecar, err := agent.New(agent.PodLayout(), rootAbsent(), log)
	if err != nil {
		return err
	}
	has, err := given()
	if err != nil {
		return err
	}
	sidecar.SetMemoryBudget(has.Memory)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		served <- sidecar.Serve(ctx, ":"+strconv.Itoa(agent.Port))
		stop()
	}()
	if err := sidecar.Run(ctx); err != nil {
		return err
	}
	return <-served
}

// given is what mysqld has here, apart from its volume.
func given() (sizing.Given, error) {
	found := sizing.Given{}
	for name, value := range map[string]*int64{mysqlcluster.EnvMemory: &found.Memory, mysqlcluster.EnvCPU: &found.CPU} {
		text, set := os.LookupEnv(name)
		if !set {
			continue
		}
		number, wrong := strconv.ParseInt(text, 10, 64)
		if wrong != nil {
			return found, fmt.Errorf("environment %s=%q is not a number: this subcommand runs inside the Pods of a MySQLCluster only", name, text)
		}
		*value = number
	}
	return found, nil
}

// memberIdentity is who this Pod is, as its StatefulSet tells.
func memberIdentity() (agent.Identity, error) {
	pod := os.Getenv(mysqlcluster.EnvPod)
	number := pod[strings.LastIndex(pod, "-")+1:]
	ordinal, err := strconv.Atoi(number)
	if err != nil {
		return agent.Identity{}, fmt.Errorf("environment %s=%q does not end in a number: this subcommand runs inside the Pods of a MySQLCluster only", mysqlcluster.EnvPod, pod)
	}
	return agent.Identity{
		Pod: pod, Host: os.Getenv(mysqlcluster.EnvHost), Ordinal: ordinal, Settings: os.Getenv(mysqlcluster.EnvSettings), RootAbsent: rootAbsent(),
	}, nil
}

// rootAbsent reports whether nobody looks after root@'%'.
func rootAbsent() bool { return os.Getenv(mysqlcluster.EnvRoot) == string(v1.RootAbsent) }
