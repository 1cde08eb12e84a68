package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// restartsNobody waits for a reason, and sees that all members are as they were.
func (v *vault) restartsNobody(t *testing.T, cluster, reason string, words ...string) {
	t.Helper()
	before, generation := v.made(cluster), v.get(t, "statefulsets", cluster).GetGeneration()
	waits := v.until(t, cluster, reason)
	v.stalled(t, waits, words...)
	if strings.Contains(why(waits).Message, theSecret) {
		t.Errorf("an image's words are repeated: %s", why(waits).Message)
	}
	if made := v.made(cluster); made != before || v.get(t, "statefulsets", cluster).GetGeneration() != generation || waits.Status.ReadySummary != "3/3" {
		t.Errorf("there have been %v Pods of the members, and %v before; %s serve", made, before, waits.Status.ReadySummary)
	}
}

// TestMySQLClusterAsksBeforeMembersRestart: settings and images that no member could start with touch no member.
func TestMySQLClusterAsksBeforeMembersRestart(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	o := v.operate(t, nil)
	v.apply(t, "db", "secret: root, replicas: 3")
	v.settled(t, "db")

	t.Log("a setting that mysqld does not know")
	v.apply(t, "db", "secret: root, replicas: 3, config: {no_such_setting: '1'}")
	v.restartsNobody(t, "db", "SettingsRefused", `mysqld of image "mysql:latest" does not accept no_such_setting;`)
	v.restful(t, o)
	v.apply(t, "db", "secret: root, replicas: 3")
	v.settled(t, "db")

	t.Log("a value that it could not read")
	v.apply(t, "db", "secret: root, replicas: 3, config: {sort_buffer_size: much}")
	v.restartsNobody(t, "db", "SettingsRefused", "spec.config: sort_buffer_size must be a whole number")

	t.Log("one that the table knows is applied without a question, one that it does not know after one")
	for _, config := range []string{"sort_buffer_size: 1M", "sql_mode: ANSI"} {
		before := v.made("db")
		v.apply(t, "db", "secret: root, replicas: 3, config: {"+config+"}")
		v.settled(t, "db")
		soon(t, func(context.Context) string {
			if made := v.made("db"); made != [3]int{before[0] + 1, before[1] + 1, before[2] + 1} {
				return fmt.Sprintf("there have been %v Pods of the members, and %v before", made, before)
			}
			return ""
		})
		v.settled(t, "db")
	}
}

// TestMySQLClusterAsksOtherImages: nor does an image that says nothing of use, or is of an older series.
func TestMySQLClusterAsksOtherImages(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.operate(t, nil)
	v.apply(t, "db", "secret: root, replicas: 3, config: {sql_mode: ANSI}")
	v.settled(t, "db")
	v.apply(t, "db", "secret: root, replicas: 3, image: 'broken:1', config: {sql_mode: ANSI}")
	v.restartsNobody(t, "db", "ImageUnusable", `image "broken:1" did not report`, "kubectl logs job/db-settings")
	v.apply(t, "db", "secret: root, replicas: 3, image: 'mysql:8.4.6', config: {sql_mode: ANSI}")
	v.restartsNobody(t, "db", "ImageOlderThanData", `image "mysql:8.4.6" has MySQL 8.4.6`)

	t.Log("back to what the members have: the operator asks no image, and no member restarts")
	before := v.made("db")
	v.apply(t, "db", "secret: root, replicas: 3, config: {sql_mode: ANSI}")
	v.settled(t, "db")
	if made := v.made("db"); made != before {
		t.Errorf("there have been %v Pods of the members, and %v before", made, before)
	}
}

// TestMySQLClusterAddsMembersWhileSettingsAreRefused: they get the settings that the others have.
func TestMySQLClusterAddsMembersWhileSettingsAreRefused(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.operate(t, nil)
	v.apply(t, "db", "secret: root, replicas: 2")
	v.settled(t, "db")
	v.apply(t, "db", "secret: root, replicas: 3, config: {no_such_setting: '1'}")
	soon(t, func(ctx context.Context) string {
		now, err := v.cluster(ctx, "db")
		if err != nil || why(now).Reason != "SettingsRefused" || now.Status.ReadySummary != "3/3" {
			return fmt.Sprintf("the status is %+v (%v)", now.Status, err)
		}
		return ""
	})
	v.apply(t, "db", "secret: root, replicas: 3")
	v.settled(t, "db")
	if made := v.made("db"); made != [3]int{1, 1, 1} {
		t.Errorf("there have been %v Pods of the members", made)
	}
}
