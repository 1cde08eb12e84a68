package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
)

// resourceLimits returns the memory and CPU that mysqld has in this Pod. The volume is not included.
func resourceLimits() (sizing.Resources, error) {
	found := sizing.Resources{}
	for name, value := range map[string]*int64{agent.EnvMemory: &found.Memory, agent.EnvCPU: &found.CPU} {
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

// memberIdentity returns this Pod's identity from the environment that its StatefulSet sets.
func memberIdentity() (agent.Identity, error) {
	pod := os.Getenv(agent.EnvPod)
	number := pod[strings.LastIndex(pod, "-")+1:]
	ordinal, err := strconv.Atoi(number)
	if err != nil {
		return agent.Identity{}, fmt.Errorf("environment %s=%q does not end in a number: this subcommand runs inside the Pods of a MySQLCluster only", agent.EnvPod, pod)
	}
	return agent.Identity{
		Pod: pod, Host: os.Getenv(agent.EnvHost), Ordinal: ordinal, Settings: os.Getenv(agent.EnvSettings), RootAbsent: rootAbsent(),
	}, nil
}

// rootAbsent reports whether the agent leaves root@'%' as it is.
func rootAbsent() bool { return os.Getenv(agent.EnvRoot) == agent.RootAbsent }
