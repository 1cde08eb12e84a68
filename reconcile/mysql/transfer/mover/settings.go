package mover

import (
	"fmt"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// fitSettings returns which settings spec.config must have for the data; nil if none are missing.
func fitSettings(made, wanted map[string]string) error {
	found := protocol.SettingMismatches(made, wanted)
	if len(found) == 0 {
		return nil
	}
	is, set := make([]string, len(found)), make([]string, len(found))
	for i, one := range found {
		is[i], set[i] = fmt.Sprintf("%s is %s and not %s", one.Name, one.Needs, one.Has), fmt.Sprintf("%s: %q", one.Name, one.Needs)
	}
	return refused(protocol.ReasonSettingsMismatch, "the cluster's mysqld cannot start with the backup's data files, in which %s; set in spec.config: %s", strings.Join(is, ", "), strings.Join(set, ", "))
}

// startedWith returns the settings that mysqld needs for a backup's data, for a person; empty for none.
func startedWith(made map[string]string) string {
	found := protocol.SettingMismatches(made, nil)
	if len(found) == 0 {
		return ""
	}
	options := make([]string, len(found))
	for i, one := range found {
		options[i] = one.Name + "=" + one.Needs
	}
	return "; start mysqld with " + strings.Join(options, " and ")
}
