package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysqlcluster"
)

// runInit is the subcommand init: the first init container of a member's Pod.
func runInit() error {
	who, err := memberIdentity()
	if err != nil {
		return err
	}
	return agent.Prepare(agent.PodLayout(), who)
}

// runAgent is the subcommand agent: the sidecar of a member's Pod. It ends when the context does.
func runAgent(ctx context.Context, log logr.Logger) error {
	sidecar, err := agent.New(agent.PodLayout(), log)
	if err != nil {
		return err
	}
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

// memberIdentity is who this Pod is, as its StatefulSet tells.
func memberIdentity() (agent.Identity, error) {
	pod := os.Getenv(mysqlcluster.EnvPod)
	number := pod[strings.LastIndex(pod, "-")+1:]
	ordinal, err := strconv.Atoi(number)
	if err != nil {
		return agent.Identity{}, fmt.Errorf("environment %s=%q does not end in a number: this subcommand runs inside the Pods of a MySQLCluster only", mysqlcluster.EnvPod, pod)
	}
	return agent.Identity{
		Pod: pod, Host: os.Getenv(mysqlcluster.EnvHost), Ordinal: ordinal, Settings: os.Getenv(mysqlcluster.EnvSettings),
	}, nil
}
