package backup

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// holdout is an instance whose data must not be deleted, because its Secret does not name its endpoint. Operators check it once an hour.
type holdout struct {
	instance v1.MySQLBackupInstance
	events   int
}

// term runs one operator process from one hour to another, with this clock error. It returns the hour in which the operator leaves the
// data; -1 if it does not. The operator starts without observations.
func (h *holdout) term(t *testing.T, from, to int, off time.Duration) int {
	t.Helper()
	sights := transfer.NewStopwatch()
	for hour := from; hour < to; hour++ {
		seen := deletionObserved{now: after(time.Duration(hour)*time.Hour + off), credentialsRefused: "not sent"}
		seen.credentialsRefusedFor = sights.Waited(keyOf(h.instance), sightBarred, seen.now)
		what, because := decideEnd(h.instance, seen)
		if what == deletionStepAbandon {
			return hour
		}
		if what != deletionStepWaitForUser {
			t.Fatalf("in hour %d it decides to %s: %s", hour, what, because)
		}
		outcome := waitForUserOutcome(h.instance, because, seen.now)
		h.instance.Status, _ = outcome.Status.(v1.MySQLBackupInstanceStatus)
		h.events += len(outcome.Events)
	}
	return -1
}

// stalled is an instance that had a problem long before its deletion, which raised the generation.
func stalled(reason string) func(*v1.MySQLBackupInstance) {
	return func(instance *v1.MySQLBackupInstance) {
		instance.Status.Phase = v1.BackupFailed
		conditionsOf(&instance.Status, after(-1000*time.Hour)).Set(v1.ConditionStalled, metav1.ConditionTrue, reason, "long ago")
		instance.Status.Conditions[0].ObservedGeneration = instance.Generation
		instance.Generation++
	}
}

// TestWhichSecretsAreWaitedFor: a user can fix anything that stops credentials from being sent to the store, and the message says how.
func TestWhichSecretsAreWaitedFor(t *testing.T) {
	t.Parallel()
	const id, key, account, signature = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", keyAzureAccount, "AZURE_STORAGE_SAS_TOKEN"
	for name, test := range map[string]struct {
		url  string
		keys []string
		says []string
	}{
		"it is complete":                             {url: "s3://bucket?endpoint=https://v", keys: []string{id, key, keyEndpoint}},
		"the provider's own servers":                 {url: "s3://bucket", keys: []string{id, key}},
		"it no longer names the endpoint":            {url: "s3://bucket?endpoint=https://v", keys: []string{id, key}, says: []string{"not sent to endpoint=https://v", `add the key "endpoint"`}},
		"a signature as earlier builds accepted it":  {url: "azblob://bucket?storage_account=v", keys: []string{signature}, says: []string{"add AZURE_STORAGE_ACCOUNT to it"}},
		"a signature and its account":                {url: "azblob://bucket?storage_account=v", keys: []string{account, signature}},
		"a signature for another account":            {url: "azblob://bucket?storage_account=w", keys: []string{account, signature}, says: []string{"a signature for another storage account", "the keys of its Secret"}},
		"a token that would be read on the way":      {url: "s3://bucket?endpoint=http://v", keys: []string{id, key, "AWS_SESSION_TOKEN", keyEndpoint}, says: []string{"not sent over plain HTTP"}},
		"a URL that is no longer valid, for example": {url: "s3://bucket?color=red", keys: []string{id, key}, says: []string{`no option "color"`}},
	} {
		data := map[string][]byte{}
		for _, one := range test.keys {
			data[one] = []byte("v")
		}
		got := credentialsRefusedReason(v1.BackupLocation{URL: test.url, Secret: "s3"}, data)
		if (got == "") != (test.says == nil) {
			t.Errorf("%s: it is barred because %q", name, got)
		}
		for _, words := range test.says {
			if !strings.Contains(got, words) || !strings.HasPrefix(got, `Secret "s3": `) {
				t.Errorf("%s: it is barred because %q, want it to say %q", name, got, words)
			}
		}
	}
}

// TestNobodyIsWaitedForForEver: an operator that has waited for a day leaves the data. After two days and ten minutes any operator does.
func TestNobodyIsWaitedForForEver(t *testing.T) {
	t.Parallel()
	type spell struct {
		from, to int
		off      time.Duration
	}
	daily := []spell{{from: 0, to: 20}, {from: 20, to: 40}, {from: 40, to: 60}}
	for name, test := range map[string]struct {
		before func(*v1.MySQLBackupInstance)
		terms  []spell
		// leaves is the hour in which the operator leaves the data; -1 if it does not.
		leaves int
	}{
		"one operator":                              {terms: []spell{{from: 0, to: 60}}, leaves: 25},
		"two terms of less than a day":              {terms: daily[:2], leaves: -1},
		"one after the other, each for hours":       {terms: daily, leaves: 49},
		"each for an hour":                          {terms: []spell{{0, 1, 0}, {12, 13, 0}, {30, 31, 0}, {48, 49, 0}, {55, 56, 0}}, leaves: 55},
		"the second counts a day before that":       {terms: []spell{{from: 0, to: 10}, {from: 10, to: 60}}, leaves: 35},
		"the second's clock is a day ahead":         {terms: []spell{{0, 10, 0}, {10, 20, 24 * time.Hour}}, leaves: -1},
		"the first's was a year ahead":              {terms: []spell{{0, 20, 8760 * time.Hour}, {20, 44, 0}}, leaves: -1},
		"the first's was a year behind":             {terms: []spell{{0, 2, -8760 * time.Hour}, {2, 20, 0}}, leaves: -1},
		"the backup had failed for another reason":  {before: stalled(protocol.ReasonDestinationFull), terms: daily, leaves: 49},
		"it had failed for the same, long ago":      {before: stalled(protocol.ReasonDestinationRefused), terms: daily, leaves: 49},
		"and its deletion is first seen days later": {before: stalled(protocol.ReasonDestinationRefused), terms: []spell{{from: 100, to: 120}}, leaves: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waits := holdout{instance: fresh(begins, goes)}
			waits.instance.DeletionTimestamp = &metav1.Time{Time: born()} // the hours count from its deletion
			if test.before != nil {
				test.before(&waits.instance)
			}
			leaves := -1
			for _, term := range test.terms {
				if leaves = waits.term(t, term.from, term.to, term.off); leaves >= 0 {
					break
				}
			}
			if leaves != test.leaves || waits.events != 1 {
				t.Errorf("the data is left in hour %d, want %d; %d events, want one", leaves, test.leaves, waits.events)
			}
		})
	}
}

// TestWhatIsToldLeftIsLeft: the operator restarts between its report and the removal of the finalizer.
func TestWhatIsToldLeftIsLeft(t *testing.T) {
	t.Parallel()
	instance := fresh(begins, goes)
	instance.Status = deletionStatus(instance, report.Problem{Reason: protocol.ReasonDataLeft, Message: "the data remains", Stalled: true}, after(50*time.Hour))
	if what, _ := decideEnd(instance, deletionObserved{now: after(51 * time.Hour), credentialsRefused: "not sent"}); what != deletionStepAbandon {
		t.Errorf("decided to %s", what)
	}
}
