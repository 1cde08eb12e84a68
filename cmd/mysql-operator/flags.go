package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mysql-operator/mysql-operator/schema"
)

// environmentPrefix begins the name of every environment variable that is read instead of a flag.
const environmentPrefix = "MYSQL_OPERATOR_"

// usageError is a command line that makes no sense.
type usageError struct {
	cause error
}

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

func isUsage(err error) bool {
	var usage *usageError
	return errors.As(err, &usage)
}

func badUsage(format string, arguments ...any) error {
	return &usageError{fmt.Errorf(format, arguments...)}
}

// parse reads the command line, then the environment for the flags it does not have, and returns what is left of the command line.
func parse(flags *pflag.FlagSet, p process) ([]string, error) {
	flags.SortFlags = false
	flags.SetOutput(p.out)
	if err := flags.Parse(p.arguments); err != nil {
		if isHelp(err) {
			return nil, err
		}
		return nil, &usageError{err}
	}
	var faults []error
	flags.VisitAll(func(flag *pflag.Flag) {
		name := environmentName(flag.Name)
		value := p.environment(name)
		if flag.Changed || value == "" {
			return
		}
		if err := flags.Set(flag.Name, value); err != nil {
			faults = append(faults, badUsage("read environment variable %s=%q: %w", name, value, err))
		}
	})
	return flags.Args(), errors.Join(faults...)
}

// environmentName returns the variable that is read instead of a flag: MYSQL_OPERATOR_LOG_LEVEL for log-level.
func environmentName(flag string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// oneOf checks a flag that knows a few words only.
func oneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return badUsage("--%s=%s: use one of %s", flag, value, strings.Join(words, ", "))
}

func kindsFlag(flags *pflag.FlagSet, into *[]string) {
	flags.StringSliceVar(into, "kinds", nil, "kinds to reconcile: all, or a list of "+strings.Join(schema.KindNames(), ", ")+" (default: the MySQL kinds)")
}

func namespacesFlag(flags *pflag.FlagSet, into *[]string) {
	flags.StringSliceVar(into, "namespaces", nil, "namespaces to work in; Roles in them are enough then (default: all)")
}

// The ways of --crds.
const (
	crdsApply = "apply"
	crdsCheck = "check"
	crdsOff   = "off"
)

func crdsFlag(flags *pflag.FlagSet, into *string) {
	flags.StringVar(into, "crds", crdsApply, "definitions at start: apply creates and updates them, check only makes sure they serve, off trusts")
}

func kubeconfigFlag(flags *pflag.FlagSet, into *string) {
	flags.StringVar(into, "kubeconfig", "", "kubeconfig file (default: KUBECONFIG, ~/.kube/config, or the Pod's service account)")
}
