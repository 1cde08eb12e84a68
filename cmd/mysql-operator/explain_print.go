package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// printExplanation prints an explanation for a person.
func printExplanation(out io.Writer, e mysqlcluster.Explanation) error {
	var text strings.Builder
	fmt.Fprintf(&text, "MySQLCluster %s/%s at %s\n", e.Namespace, e.Name, e.Time.UTC().Format("2006-01-02 15:04:05Z"))
	printRecord(&text, e)
	if err := printMembers(&text, e.Members); err != nil {
		return err
	}
	printVerdicts(&text, e.Verdicts)
	printNext(&text, e)
	printTakeover(&text, e.Takeover)
	fmt.Fprintf(&text, "\nFAILOVER READY\n  %s: %s\n", e.Readiness.Reason, e.Readiness.Message)
	printReported(&text, e)
	printList(&text, "ONLY THE RUNNING OPERATOR KNOWS", e.Unknown)
	_, err := io.WriteString(out, text.String())
	return err
}

func printRecord(out io.Writer, e mysqlcluster.Explanation) {
	record := e.Record
	fmt.Fprintf(out, "\nRECORD %d.%d (epoch.revision)\n", record.Epoch, record.Revision)
	switch {
	case record.Primary != "":
		fmt.Fprintf(out, "  primary %s\n", record.Primary)
	case record.FormerPrimary != "":
		fmt.Fprintf(out, "  no primary: another member takes over from %s, and the others must not acknowledge its commits\n", record.FormerPrimary)
	default:
		fmt.Fprintln(out, "  no primary yet")
	}
	fmt.Fprintf(out, "  in sync: %s; joining: %s\n", listed(record.InSync), listed(record.Joining))
	lease := "the primary needs no lease"
	if record.LeaseLasts > 0 {
		lease = fmt.Sprintf("the primary's lease lasts %s", record.LeaseLasts)
	}
	fmt.Fprintf(out, "  commits need %d acknowledgements; %s\n", record.RequiredAcks, lease)
	unreachable, crashes, lost := "Wait", "Replace", "Block"
	if e.Limits.IsReplacedUnreachable {
		unreachable = "Replace"
	}
	if e.Limits.RestartsCrashed {
		crashes = "Restart"
	}
	if e.Limits.ContinuesWithoutReplicas {
		lost = fmt.Sprintf("Continue after %d s", e.Limits.GracePeriodSeconds)
	}
	fmt.Fprintf(out, "  spec: notReadySeconds %d, unreachableSeconds %d, whenPrimaryUnreachable %s, whenPrimaryCrashes %s, whenReplicasLost %s\n",
		e.Limits.NotReadySeconds, e.Limits.UnreachableSeconds, unreachable, crashes, lost)
}

func listed(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// printMembers prints a row for each member, and below it why one does not answer, and what those say that do.
func printMembers(out io.Writer, members []replication.Evidence) error {
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEMBER\tROLE\tANSWERS\tSTATE\tQUIET\tACKS\tTO-APPLY\tLACKS\tALONE\tACCEPTED\tLEASE\tNOTES")
	for _, one := range members {
		fmt.Fprintf(table, "%s\t%s\t%s\n", one.Name, one.Role, strings.Join(cellsOf(one), "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, one := range members {
		if says := cmp.Or(one.Unreachable, one.Message); says != "" {
			fmt.Fprintf(out, "  %s: %s\n", one.Name, says)
		}
	}
	return nil
}

// cellsOf are the columns of a member after its role. A dash means that it is not known, or does not apply.
func cellsOf(e replication.Evidence) []string {
	if !e.Answers {
		return []string{"no", none, none, none, none, none, none, none, none, notesOf(e)}
	}
	quiet, acks, lease := none, none, none
	if e.QuietSeconds > 0 {
		quiet = fmt.Sprintf("%ds", e.QuietSeconds)
	}
	switch {
	case e.Role == rolePrimary:
		acks = fmt.Sprintf("%d of %d", e.AckClients, e.Connected)
	case e.IsAcknowledging:
		acks = "gives"
	}
	if e.HasLease {
		lease = fmt.Sprintf("%ds left", e.LeaseLeft)
	}
	return []string{
		"yes", string(e.State), quiet, acks, fmt.Sprint(e.ToApply), fmt.Sprint(e.Lacks), fmt.Sprint(e.Alone),
		fmt.Sprintf("%d.%d %s", e.Accepted.Epoch, e.Accepted.Revision, e.AcceptedAs), lease, notesOf(e),
	}
}

const (
	rolePrimary = "primary"
	none        = "-"
)

func notesOf(e replication.Evidence) string {
	var notes []string
	note := func(holds bool, text string) {
		if holds {
			notes = append(notes, text)
		}
	}
	note(!e.Answers && e.IsRunning, "Kubernetes says that its agent runs")
	note(e.IsWitness, "counts")
	note(e.TakesNoWrites && e.Role != "in sync", "certainly takes no writes")
	note(e.IsRestarting, "its container restarts")
	note(e.UnansweredSeconds > 0, fmt.Sprintf("mysqld has not answered for %d s", e.UnansweredSeconds))
	note(e.AcksShortSeconds > 0, fmt.Sprintf("too few acknowledgements for %d s", e.AcksShortSeconds))
	note(e.VolumeStuckSeconds > 0, fmt.Sprintf("its volume has taken no write for %d s", e.VolumeStuckSeconds))
	note(e.VolumeFailure != "", "its volume returns errors: "+e.VolumeFailure)
	note(e.Disk == replication.DiskFull, "its volume is full or nearly full")
	note(e.Role == rolePrimary && e.CommitWaitSeconds > 0, fmt.Sprintf("commits have hung for %d s", e.CommitWaitSeconds))
	note(e.IsForgetful, "may have lost what it acknowledged")
	note(e.NeedsCopy, "needs a copy of the data")
	note(e.IsOtherRelease, "agent of another release")
	return cmp.Or(strings.Join(notes, ", "), none)
}

func printVerdicts(out io.Writer, verdicts []replication.Verdict) {
	if len(verdicts) > 0 {
		fmt.Fprintln(out, "\nHAS THE PRIMARY FAILED?")
	}
	for _, verdict := range verdicts {
		fmt.Fprintf(out, "  %s: %s\n", verdict.Rule, answerOf(verdict))
		for _, check := range verdict.Checks {
			mark := "no "
			switch {
			case check.Holds:
				mark = "yes"
			case check.IsMemory:
				mark = "?  "
			}
			fmt.Fprintf(out, "    %s  %s%s\n", mark, check.What, lasted(check))
		}
	}
}

// answerOf is "not yet" if nothing but time is missing.
func answerOf(verdict replication.Verdict) string {
	isLacking := func(check replication.Check) bool { return !check.Holds && check.NeededSeconds == 0 }
	switch {
	case verdict.Message != "":
		return "yes: " + verdict.Message
	case slices.ContainsFunc(verdict.Checks, isLacking):
		return "no"
	}
	return "not yet"
}

// lasted says for how long something has been so that must be so for a time.
func lasted(check replication.Check) string {
	switch {
	case check.NeededSeconds == 0:
		return ""
	case check.IsMemory:
		return fmt.Sprintf(": must be so for %d s; only the running operator knows for how long it is", check.NeededSeconds)
	}
	return fmt.Sprintf(": for %d s of %d", check.Seconds, check.NeededSeconds)
}

func printNext(out io.Writer, e mysqlcluster.Explanation) {
	fmt.Fprintln(out, "\nWHAT THE OPERATOR DOES NEXT, IF NOTHING CHANGES")
	switch next := e.Next; {
	case e.Idle != "":
		fmt.Fprintf(out, "  nothing: %s\n", e.Idle)
		return
	case !next.Changes:
		fmt.Fprintln(out, "  nothing: it keeps the record")
	case next.Seconds == 0:
		fmt.Fprintf(out, "  now: %s\n", next.What)
	default:
		fmt.Fprintf(out, "  in %d s at the latest: %s\n", next.Seconds, next.What)
	}
	if e.Next.Message != "" {
		fmt.Fprintf(out, "  %s: %s\n", e.Next.Reason, e.Next.Message)
	}
	if e.Next.Command != "" {
		fmt.Fprintf(out, "  what you may do: %s\n", e.Next.Command)
	}
	if e.Next.Force != "" {
		fmt.Fprintf(out, "  if the data of the other members is lost for good: %s\n", e.Next.Force)
	}
}

func printTakeover(out io.Writer, t replication.Takeover) {
	fmt.Fprintln(out, "\nIF ANOTHER MEMBER TOOK OVER NOW")
	if t.To == "" {
		fmt.Fprintf(out, "  none may: %s: %s\n", t.Reason, t.Problem)
	} else {
		fmt.Fprintf(out, "  who: %s\n", t.To)
	}
	if t.Deferred != "" {
		fmt.Fprintf(out, "  deferred: %s\n", t.Deferred)
	}
	begun := "after the operator has begun"
	if t.BehindSeconds > 0 {
		fmt.Fprintf(out, "  applies first: what it has received; it is %d s behind\n", t.BehindSeconds)
		begun += " and that is applied"
	}
	if t.Seconds > 0 {
		fmt.Fprintf(out, "  how long: about %d s at most %s\n", t.Seconds, begun)
	}
	if t.UntilThen != "" {
		fmt.Fprintf(out, "  waits for: %s\n", t.UntilThen)
	}
	fmt.Fprintf(out, "  loses: %s\n", t.Loses)
}

// printReported prints since when the operator reports that something is not as it should be, and the last takeover.
func printReported(out io.Writer, e mysqlcluster.Explanation) {
	var lines []string
	for _, one := range e.Conditions {
		if one.Status != metav1.ConditionTrue && (one.Type == "Ready" || one.Type == "FailoverReady") {
			lines = append(lines, fmt.Sprintf("%s is %s since %s: %s", one.Type, one.Status, one.LastTransitionTime.UTC().Format("15:04:05Z"), one.Reason))
		}
	}
	if count := len(e.Takeovers); count > 0 {
		last := e.Takeovers[count-1]
		line := fmt.Sprintf("takeover of epoch %d from %s to %s began %s ago", last.Epoch, last.From, cmp.Or(last.To, "?"), e.Time.Sub(last.StartTime.Time).Round(1e9))
		if last.CompletionTime != nil {
			line += "; it took over" + last.Durations()
		}
		lines = append(lines, line)
	}
	printList(out, "THE STATUS SAYS", lines)
}

func printList(out io.Writer, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(out, "\n%s\n  %s\n", title, strings.Join(lines, "\n  "))
	}
}
