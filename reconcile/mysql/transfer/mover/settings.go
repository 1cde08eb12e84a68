package mover

import (
	"fmt"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
)

// fitSettings says what spec.config lacks to start the data; nil for nothing.
func fitSettings(made, wanted map[string]string) error {
	found := transfer.Misfits(made, wanted)
	if len(found) == 0 {
		return nil
	}
	is, set := make([]string, len(found)), make([]string, len(found))
	for i, one := range found {
		is[i], set[i] = fmt.Sprintf("%s is %s and not %s", one.Name, one.Needs, one.Has), fmt.Sprintf("%s: %q", one.Name, one.Needs)
	}
	return refused(transfer.ReasonSettingsMismatch, "the cluster's mysqld could not start the backup's data files: in them %s; write in spec.config: %s", strings.Join(is, ", "), strings.Join(set, ", "))
}

// startedWith tells a person the settings that a backup's data needs of mysqld; empty for none.
func startedWith(made map[string]string) string {
	found := transfer.Misfits(made, nil)
	if len(found) == 0 {
		return ""
	}
	options := make([]string, len(found))
	for i, one := range found {
		options[i] = one.Name + "=" + one.Needs
	}
	return "; mysqld has to be started with " + strings.Join(options, " and ")
}
