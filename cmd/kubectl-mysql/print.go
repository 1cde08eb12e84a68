package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const unknown = "-"

func printTopologies(out io.Writer, all []topology) error {
	for i, one := range all {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printTopology(out, one); err != nil {
			return err
		}
	}
	return nil
}

func printTopology(out io.Writer, t topology) error {
	s := t.Status
	fmt.Fprintf(out, "%s/%s: %s, %s ready, record %d.%d, commits need %d acknowledgements, %s\n",
		t.Namespace, t.Name, cmp.Or(string(s.Phase), "Pending"), cmp.Or(s.ReadySummary, unknown), s.Epoch, s.Revision, s.RequiredAcks, leaseOf(s))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  MEMBER\tROLE\tSTATE\tLAG\tVERSION\tPOD\tRESTARTS\tNODE")
	for _, member := range s.Members {
		lag, place := unknown, pod{State: unknown, Node: unknown}
		if member.LagSeconds != nil {
			lag = fmt.Sprintf("%ds", *member.LagSeconds)
		}
		restarts := unknown
		for _, one := range t.Pods {
			if one.Name == member.Name {
				place, restarts = one, strconv.Itoa(int(one.Restarts))
			}
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", member.Name, cmp.Or(string(member.Role), unknown), cmp.Or(member.State, unknown), lag,
			cmp.Or(member.Version, unknown), place.State, restarts, cmp.Or(place.Node, unknown))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, line := range linesOf(t) {
		fmt.Fprintln(out, "  "+line)
	}
	return nil
}

func leaseOf(s v1.MySQLClusterStatus) string {
	if s.LeaseMilliseconds == 0 {
		return "no lease"
	}
	return fmt.Sprintf("lease %s", time.Duration(s.LeaseMilliseconds)*time.Millisecond)
}

// linesOf are the messages of members, the conditions that are not as they should be, the takeovers, and what could not be read.
func linesOf(t topology) []string {
	var lines []string
	for _, member := range t.Status.Members {
		if member.Message != "" {
			lines = append(lines, member.Name+": "+member.Message)
		}
	}
	for _, one := range t.Faults {
		lines = append(lines, fmt.Sprintf("%s is %s, %s: %s", one.Type, one.Status, one.Reason, one.Message))
	}
	for _, one := range t.Status.Takeovers {
		began := one.StartTime.UTC().Format("2006-01-02 15:04:05Z")
		took := "in progress"
		if one.CompletionTime != nil {
			took = "took over" + one.Durations()
		}
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("takeover %s, %s -> %s, %s: %s", began, one.From, cmp.Or(one.To, "?"), took, one.Message), ": "))
		if one.Unacknowledged != "" {
			lines = append(lines, fmt.Sprintf("  only %s had, and keeps in its volume: %s", one.From, one.Unacknowledged))
		}
		if one.Kept != "" {
			lines = append(lines, fmt.Sprintf("  a user made %s the primary, and all commits may be lost except %s; known to be lost: %s", one.To, one.Kept, cmp.Or(one.Lost, unknown)))
		}
	}
	return append(lines, t.Unseen...)
}
