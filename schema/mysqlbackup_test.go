package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// The founding operator's fields: documents with these alone must always apply.
const (
	seedSchedule = `
apiVersion: cr.mysqloperator.grtl.github.com/v1
kind: MySQLBackupSchedule
metadata:
  name: "my-backup"
spec:
  cluster: "my-cluster"
  time: "*/30 * * * *"
  storage: "1Gi"
`
	seedInstance = `
apiVersion: cr.mysqloperator.grtl.github.com/v1
kind: MySQLBackupInstance
metadata:
  name: "my-backup-2017-12-14-01-22-00"
  labels:
    schedule: "my-backup"
    cluster: "my-cluster"
spec:
  schedule: "my-backup"
  cluster: "my-cluster"
`
)

// schedule and instance are documents with the name and the spec's lines in flow style.
func schedule(name, spec string) string { return backupDocument("MySQLBackupSchedule", name, spec) }
func instance(name, spec string) string { return backupDocument("MySQLBackupInstance", name, spec) }

func backupDocument(kind, name, spec string) string {
	return fmt.Sprintf("apiVersion: cr.mysqloperator.grtl.github.com/v1\nkind: %s\nmetadata: {name: %s}\nspec: {%s}\n", kind, name, spec)
}

func TestSeedBackupsApply(t *testing.T) {
	t.Parallel()
	stored, err := newAPIServer(t, "MySQLBackupSchedule").create(seedSchedule)
	if err != nil {
		t.Fatalf("the seed's schedule is refused: %v", err)
	}
	plan := mysqlv1.MySQLBackupSchedule{}
	if err := DecodeStrict(stored, &plan); err != nil {
		t.Fatal(err)
	}
	if plan.Spec.Cluster != "my-cluster" || plan.Spec.Time != "*/30 * * * *" || plan.Spec.Storage.String() != "1Gi" {
		t.Errorf("the schedule is read as %+v", plan.Spec)
	}

	stored, err = newAPIServer(t, "MySQLBackupInstance").create(seedInstance)
	if err != nil {
		t.Fatalf("the seed's instance is refused: %v", err)
	}
	backup := mysqlv1.MySQLBackupInstance{}
	if err := DecodeStrict(stored, &backup); err != nil {
		t.Fatal(err)
	}
	if backup.Spec.Cluster != "my-cluster" || backup.Spec.Schedule != "my-backup" || backup.Labels[mysqlv1.LabelBackupSchedule] != "my-backup" {
		t.Errorf("the instance is read as %+v", backup.Spec)
	}
}

// TestBackupDefaults: a schedule has defaults; an instance has none, because otherwise its schedule's settings would not apply.
func TestBackupDefaults(t *testing.T) {
	t.Parallel()
	for kind, test := range map[string]struct {
		document string
		want     map[string]any
	}{
		"MySQLBackupSchedule": {schedule("a", "cluster: c, time: '@daily'"), map[string]any{
			"cluster": "c", "time": "@daily", "timeZone": "UTC", "suspend": false, "concurrencyPolicy": "Forbid", "failedHistoryLimit": int64(3),
			"activeDeadlineSeconds": int64(86400), "deletionPolicy": "Retain",
		}},
		"MySQLBackupInstance": {instance("a", "cluster: c"), map[string]any{"cluster": "c"}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			stored, err := newAPIServer(t, kind).create(test.document)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, stored.Object["spec"]); diff != "" {
				t.Errorf("defaulted spec (-want +got):\n%s", diff)
			}
		})
	}
}

// TestScheduleTimes lists times that are accepted, and times that are refused with their messages.
func TestScheduleTimes(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLBackupSchedule")
	for _, time := range []string{
		"* * * * *", "30 2 * * *", "0 */6 * * *", "5,35 0-6,18-23/2 1,15 jan-mar mon-FRI", "00 09 * * 0", "59 23 31 12 6", "0 0 ? * ?", " 0  0 * * * ",
		"0-59/15 0 * * sun", "0 0 29 2 *", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly",
		"@every 90m", "@every 1h30m", "@every 60s",
	} {
		t.Run(time, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(schedule("a", fmt.Sprintf("cluster: c, time: %q", time)))
			wantRefusal(t, err)
		})
	}
	for _, time := range []string{
		"", "daily", "@Daily", "@every", "@every ", "@every 59s", "@every 1d", "@every -1h", "@every 1h ", "@every 99999999h", "@reboot", "* * * *", "0 0 2 * * *", "60 0 * * *", "0 24 * * *", "0 0 0 * *", "0 0 32 * *", "0 0 * 13 *", "0 0 * 0 *",
		"0 0 * * 7", "0 0 * * monday", "*/0 * * * *", "* /5 * * *", "1- * * * *", "1,,2 * * * *", ",1 * * * *", "-1 * * * *", "0 0 L * *", "0 0 * * 5#2",
		"0 0 * * *\n", "0\t0\n* * *", "$(reboot) * * * *",
	} {
		t.Run("not "+time, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(schedule("a", fmt.Sprintf("cluster: c, time: %q", time)))
			wantRefusal(t, err, "spec.time")
		})
	}
	for _, time := range []string{"TZ=Europe/Berlin 0 0 * * *", "CRON_TZ=UTC 0 0 * * *"} {
		t.Run("not "+time, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(schedule("a", fmt.Sprintf("cluster: c, time: %q", time)))
			wantRefusal(t, err, "set spec.timeZone instead")
			if strings.Contains(err.Error(), "five cron fields") {
				t.Errorf("other messages hide the one that helps: %v", err)
			}
		})
	}
}

// TestScheduleDocuments lists what is refused when a schedule is created, and with which message. No message means that it is accepted.
func TestScheduleDocuments(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLBackupSchedule")
	with := func(more string) string { return schedule("a", "cluster: c, time: '@daily', "+more) }
	for story, test := range map[string]struct {
		document string
		told     []string
	}{
		"no cluster":                 {schedule("a", "time: '@daily'"), []string{"spec.cluster: Required value"}},
		"no time":                    {schedule("a", "cluster: c"), []string{"spec.time: Required value"}},
		"a cluster elsewhere":        {schedule("a", "cluster: other/c, time: '@daily'"), []string{"spec.cluster must be the name of a MySQLCluster in the same namespace"}},
		"a cluster in capitals":      {schedule("a", "cluster: C, time: '@daily'"), []string{"spec.cluster must be the name"}},
		"a cluster that cannot be":   {schedule("a", "cluster: "+strings.Repeat("c", 41)+", time: '@daily'"), []string{"spec.cluster", "40"}},
		"a namespace":                {with("namespace: n"), []string{"unknown field spec.namespace"}},
		"forty-two characters":       {schedule(strings.Repeat("a", 42), "cluster: c, time: '@daily'"), nil},
		"forty-three characters":     {schedule(strings.Repeat("a", 43), "cluster: c, time: '@daily'"), []string{"metadata.name must be at most 42 characters"}},
		"a name that is a number":    {schedule("'1'", "cluster: c, time: '@daily'"), nil},
		"a name with a dot":          {schedule("a.b", "cluster: c, time: '@daily'"), []string{"metadata.name must be"}},
		"a time zone":                {with("timeZone: America/Argentina/Buenos_Aires"), nil},
		"a time zone with a sign":    {with("timeZone: Etc/GMT+5"), nil},
		"an offset":                  {with("timeZone: '+02:00'"), []string{"spec.timeZone must be an IANA name"}},
		"the operator's time zone":   {with("timeZone: Local"), []string{"spec.timeZone must be an IANA name"}},
		"a path as time zone":        {with("timeZone: ../../etc/passwd"), []string{"spec.timeZone must be an IANA name"}},
		"suspended":                  {with("suspend: true"), nil},
		"all policies":               {with("concurrencyPolicy: Replace, deletionPolicy: Delete"), nil},
		"another policy":             {with("concurrencyPolicy: Queue"), []string{"spec.concurrencyPolicy", `"Forbid"`, `"Allow"`, `"Replace"`}},
		"a deadline":                 {with("startingDeadlineSeconds: 600, activeDeadlineSeconds: 3600"), nil},
		"no time to start":           {with("startingDeadlineSeconds: 0"), []string{"spec.startingDeadlineSeconds", "greater than or equal to 10"}},
		"no time to finish":          {with("activeDeadlineSeconds: 0"), []string{"spec.activeDeadlineSeconds", "greater than or equal to 60"}},
		"retention":                  {with("retention: {keepLast: 7, keepFor: 720h}"), nil},
		"retention in parts":         {with("retention: {keepFor: 36h30m5s}"), nil},
		"no retention":               {with("retention: {}"), nil},
		"retention of nothing":       {with("retention: {keepLast: 0}"), []string{"spec.retention.keepLast", "greater than or equal to 1"}},
		"retention in days":          {with("retention: {keepFor: 30d}"), []string{"spec.retention.keepFor must be a time", "write days as hours"}},
		"retention without a unit":   {with("retention: {keepFor: '720'}"), []string{"spec.retention.keepFor must be a time"}},
		"retention for a moment":     {with("retention: {keepFor: 59s}"), []string{"spec.retention.keepFor must be a time of at least a minute"}},
		"retention of no time":       {with("retention: {keepFor: 0h}"), []string{"spec.retention.keepFor must be a time of at least a minute"}},
		"retention for a century":    {with("retention: {keepFor: 876000h}"), nil},
		"retention that is too long": {with("retention: {keepFor: 99999999h}"), []string{"spec.retention.keepFor must be a time"}},
		"retention of minus an hour": {with("retention: {keepFor: -1h}"), []string{"spec.retention.keepFor must be a time"}},
		"no failed ones":             {with("failedHistoryLimit: 0"), nil},
		"fewer failed than none":     {with("failedHistoryLimit: -1"), []string{"spec.failedHistoryLimit"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(test.document)
			wantRefusal(t, err, test.told...)
		})
	}
}

// TestBackupSettings lists what schedules and instances share: where backups go and how they are made.
func TestBackupSettings(t *testing.T) {
	t.Parallel()
	schedules, instances := newAPIServer(t, "MySQLBackupSchedule"), newAPIServer(t, "MySQLBackupInstance")
	for story, test := range map[string]struct {
		spec string
		told []string
	}{
		"storage and its class":             {"storage: 10Gi, storageClassName: fast", nil},
		"storage as a number":               {"storage: 1073741824", nil},
		"storage in gigabytes":              {"storage: 1GB", []string{"spec.storage must be a quantity such as"}},
		"storage 0":                         {"storage: 0", []string{"spec.storage must be at least 64Mi"}},
		"a class in capitals":               {"storageClassName: Fast", []string{"spec.storageClassName must be the name"}},
		"a claim":                           {"destination: {claim: backups}", nil},
		"a folder in a claim":               {"destination: {claim: backups, url: 'file:///mysql/nightly'}", nil},
		"the root of a claim":               {"destination: {claim: backups, url: 'file:///'}", nil},
		"a bucket":                          {"destination: {url: 's3://backups', secret: s}", nil},
		"a bucket with options":             {"destination: {url: 's3://backups/a/b?region=eu-central-1&endpoint=https://s3.example.com:9000&use_path_style=true', secret: s}", nil},
		"a bucket by identity":              {"destination: {url: 'gs://backups/mysql', serviceAccountName: backup}", nil},
		"identity and own authority":        {"destination: {url: 's3://backups', secret: ca, serviceAccountName: backup}", nil},
		"a container":                       {"destination: {url: 'azblob://backups/mysql', secret: s}", nil},
		"a bucket with a key's id":          {"destination: {url: 's3://backups?ssetype=aws:kms&kmskeyid=1234'}", nil},
		"nowhere":                           {"destination: {}", []string{"spec.destination needs a url or a claim"}},
		"a Secret alone":                    {"destination: {secret: s}", []string{"spec.destination needs a url or a claim"}},
		"an empty URL":                      {"destination: {url: ''}", []string{"spec.destination.url"}},
		"a website":                         {"destination: {url: 'https://example.com/backups'}", []string{"spec.destination.url must begin with s3://, gs://, azblob:// or file://"}},
		"a path":                            {"destination: {url: /backups, claim: c}", []string{"spec.destination.url must begin with"}},
		"capitals":                          {"destination: {url: 'S3://backups'}", []string{"spec.destination.url must begin with"}},
		"no bucket":                         {"destination: {url: 's3://'}", []string{"spec.destination.url must name the bucket"}},
		"no bucket but a folder":            {"destination: {url: 's3:///folder'}", []string{"spec.destination.url must name the bucket"}},
		"a bucket and a claim":              {"destination: {url: 's3://backups', claim: c}", []string{"spec.destination has both a bucket and a claim"}},
		"a folder without a claim":          {"destination: {url: 'file:///mysql'}", []string{"spec.destination.claim is missing"}},
		"a folder that is a host":           {"destination: {url: 'file://mysql', claim: c}", []string{"spec.destination.url must have three slashes"}},
		"a folder with options":             {"destination: {url: 'file:///mysql?create_dir=true', claim: c}", []string{"spec.destination.url must have three slashes and no options"}},
		"a folder with a Secret":            {"destination: {url: 'file:///mysql', claim: c, secret: s}", []string{"spec.destination.secret has the credentials for a bucket"}},
		"a claim with a Secret":             {"destination: {claim: c, secret: s}", []string{"spec.destination.secret has the credentials for a bucket"}},
		"out of the folder":                 {"destination: {url: 's3://backups/a/../b'}", []string{"spec.destination.url must be plain ASCII", "'..'"}},
		"out at the end":                    {"destination: {url: 'file:///mysql/..', claim: c}", []string{"'..'"}},
		"a folder that is a dot":            {"destination: {url: 's3://backups/./b'}", []string{"'.'"}},
		"a folder with dots":                {"destination: {url: 's3://backups/v1.2/..b/c..'}", nil},
		"a space":                           {"destination: {url: 's3://backups/my folder'}", []string{"write other characters as %XX"}},
		"an umlaut":                         {"destination: {url: 's3://backups/größe'}", []string{"plain ASCII"}},
		"a fragment":                        {"destination: {url: 's3://backups/a#b'}", []string{"without '#'"}},
		"a password in the URL":             {"destination: {url: 's3://key:secret@backups/mysql'}", []string{"spec.destination.url must not hold credentials", "spec.destination.secret"}},
		"a user in the URL":                 {"destination: {url: 's3://key@backups/mysql'}", []string{"must not hold credentials"}},
		"a password of the endpoint":        {"destination: {url: 's3://backups?endpoint=https://key:secret@s3.example.com'}", []string{"must not hold credentials"}},
		"a key as an option":                {"destination: {url: 's3://backups?region=x&AWS_SECRET_ACCESS_KEY=abc'}", []string{"must not hold credentials"}},
		"a signature as an option":          {"destination: {url: 'azblob://backups?sv=2020&sig=abc'}", []string{"must not hold credentials"}},
		"a claim elsewhere":                 {"destination: {claim: other/c}", []string{"spec.destination.claim must be the name of a PersistentVolumeClaim in the same namespace"}},
		"a Secret elsewhere":                {"destination: {url: 's3://backups', secret: other/s}", []string{"spec.destination.secret must be the name of a Secret in the same namespace"}},
		"an account elsewhere":              {"destination: {url: 's3://backups', serviceAccountName: 'n:a'}", []string{"spec.destination.serviceAccountName must be the name"}},
		"encryption":                        {"encryption: {secret: key}", nil},
		"encryption without a key":          {"encryption: {}", []string{"spec.encryption.secret: Required value"}},
		"encryption by a key in text":       {"encryption: {secret: AGE-SECRET-KEY-1}", []string{"spec.encryption.secret must be the name of a Secret"}},
		"a limit":                           {"bandwidthLimit: 20Mi", nil},
		"a limit as a number":               {"bandwidthLimit: 1000000", nil},
		"a limit of nothing":                {"bandwidthLimit: 0", []string{"spec.bandwidthLimit must be bytes per second", "leave it out"}},
		"a limit in megabits":               {"bandwidthLimit: 20Mbit", []string{"spec.bandwidthLimit must be bytes per second"}},
		"a limit by a slip":                 {"bandwidthLimit: 20m", []string{"spec.bandwidthLimit must be bytes per second"}},
		"a month and a second":              {"activeDeadlineSeconds: 2592001", []string{"spec.activeDeadlineSeconds"}},
		"data is deleted with the instance": {"deletionPolicy: Delete", nil},
		"data is orphaned":                  {"deletionPolicy: Orphan", []string{"spec.deletionPolicy", `"Retain"`, `"Delete"`}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			_, err := schedules.create(schedule("a", "cluster: c, time: '@daily', "+test.spec))
			wantRefusal(t, err, test.told...)
			_, err = instances.create(instance("a", "cluster: c, "+test.spec))
			wantRefusal(t, err, test.told...)
		})
	}
}

// TestInstanceDocuments lists what is refused when an instance is created, and with which message. No message means that it is accepted.
func TestInstanceDocuments(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLBackupInstance")
	for story, test := range map[string]struct {
		document string
		told     []string
	}{
		"by cluster":            {instance("a", "cluster: c"), nil},
		"by schedule":           {instance("a", "schedule: s"), nil},
		"of nothing":            {instance("a", ""), []string{"spec.cluster is missing", "spec.schedule"}},
		"without spec":          {"apiVersion: cr.mysqloperator.grtl.github.com/v1\nkind: MySQLBackupInstance\nmetadata: {name: a}\n", []string{"spec: Required value"}},
		"a cluster elsewhere":   {instance("a", "cluster: other/c"), []string{"spec.cluster must be the name of a MySQLCluster in the same namespace"}},
		"a schedule elsewhere":  {instance("a", "schedule: other/s"), []string{"spec.schedule must be the name of a MySQLBackupSchedule in the same namespace"}},
		"a namespace":           {instance("a", "cluster: c, clusterNamespace: n"), []string{"unknown field spec.clusterNamespace"}},
		"the longest name":      {instance(strings.Repeat("a", 63), "cluster: c"), nil},
		"a name too long":       {instance(strings.Repeat("a", 64), "cluster: c"), []string{"metadata.name must be at most 63 characters"}},
		"a name with a dot":     {instance("a.b", "cluster: c"), []string{"metadata.name must be"}},
		"a schedule's own name": {instance(strings.Repeat("a", 42)+"-2026-11-21-15-04-05", "schedule: "+strings.Repeat("a", 42)), nil},
		"a schedule's field":    {instance("a", "cluster: c, retention: {keepLast: 1}"), []string{"unknown field spec.retention"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(test.document)
			wantRefusal(t, err, test.told...)
		})
	}
}

// TestScheduleChanges lists what may and may not change in an existing schedule.
func TestScheduleChanges(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLBackupSchedule")
	const least = "cluster: c, time: '@daily'"
	for story, test := range map[string]struct {
		before, after string
		told          []string
	}{
		"another time":             {least, "cluster: c, time: '@hourly', timeZone: Europe/Berlin, suspend: true", nil},
		"another destination":      {least, least + ", destination: {claim: c}", nil},
		"another cluster":          {least, "cluster: d, time: '@daily'", nil},
		"storage grows":            {least + ", storage: 1Gi", least + ", storage: 2Gi", nil},
		"storage shrinks":          {least + ", storage: 2Gi", least + ", storage: 1Gi", []string{"spec.storage may not shrink", "spec.destination.claim"}},
		"storage as the cluster's": {least + ", storage: 2Gi", least, nil},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			wantRefusal(t, server.update(t, schedule("a", test.before), schedule("a", test.after)), test.told...)
		})
	}
}

// TestInstanceChanges lists what may and may not change in an instance: one field each, also a field that was not set before.
func TestInstanceChanges(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLBackupInstance")
	const full = "cluster: c, schedule: s, storage: 1Gi, storageClassName: k, destination: {url: 's3://b', secret: s}, encryption: {secret: e}, bandwidthLimit: 1Mi, activeDeadlineSeconds: 60, deletionPolicy: Retain"
	const bare = "cluster: c, schedule: s"
	immutable := []string{"spec cannot change after creation, except for spec.deletionPolicy", "create another MySQLBackupInstance"}
	for story, test := range map[string]struct {
		before, after string
		told          []string
	}{
		"nothing":                     {full, full, nil},
		"the deletion policy":         {full, strings.Replace(full, "Retain", "Delete", 1), nil},
		"the deletion policy is set":  {bare, bare + ", deletionPolicy: Delete", nil},
		"the deletion policy is gone": {full, strings.Replace(full, ", deletionPolicy: Retain", "", 1), nil},
		"the cluster":                 {full, strings.Replace(full, "cluster: c", "cluster: d", 1), immutable},
		"the cluster is set":          {"schedule: s", bare, immutable},
		"the schedule":                {full, strings.Replace(full, "schedule: s", "schedule: t", 1), immutable},
		"the schedule is set":         {"cluster: c", bare, immutable},
		"the schedule is gone":        {bare, "cluster: c", immutable},
		"the storage":                 {full, strings.Replace(full, "1Gi", "2Gi", 1), immutable},
		"the class":                   {full, strings.Replace(full, "Name: k", "Name: l", 1), immutable},
		"the bucket":                  {full, strings.Replace(full, "s3://b", "s3://c", 1), immutable},
		"the credentials":             {full, strings.Replace(full, "secret: s}", "secret: t}", 1), immutable},
		"the destination is set":      {bare, bare + ", destination: {claim: b}", immutable},
		"the destination is gone":     {bare + ", destination: {claim: b}", bare, immutable},
		"the key":                     {full, strings.Replace(full, "secret: e", "secret: f", 1), immutable},
		"the limit":                   {full, strings.Replace(full, "1Mi", "2Mi", 1), immutable},
		"the deadline":                {full, strings.Replace(full, "Seconds: 60", "Seconds: 61", 1), immutable},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			wantRefusal(t, server.update(t, instance("a", test.before), instance("a", test.after)), test.told...)
		})
	}
}

// TestBackupSettingsAreTheSame compares the settings that schedules and instances share. An instance gets an exact copy of its schedule's
// settings, so it must accept everything that a schedule accepts. Only defaults, descriptions, and what may change later differ.
func TestBackupSettingsAreTheSame(t *testing.T) {
	t.Parallel()
	schedules, instances := specOf(t, "MySQLBackupSchedule"), specOf(t, "MySQLBackupInstance")
	for _, name := range []string{"storage", "storageClassName", "destination", "encryption", "bandwidthLimit", "activeDeadlineSeconds", "deletionPolicy"} {
		one, other := schedules[name], instances[name]
		one.Description, other.Description, one.Default = "", "", nil
		one.XValidations = withoutTransitions(one.XValidations)
		if diff := cmp.Diff(one, other); diff != "" {
			t.Errorf("%s (-schedule +instance):\n%s", name, diff)
		}
	}
}

func specOf(t *testing.T, kind string) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	kinds, err := Select([]string{kind})
	if err != nil {
		t.Fatal(err)
	}
	return typedDefinition(t, kinds[0]).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
}

func withoutTransitions(rules apiextensionsv1.ValidationRules) apiextensionsv1.ValidationRules {
	kept := apiextensionsv1.ValidationRules(nil)
	for _, rule := range rules {
		if !strings.Contains(rule.Rule, "oldSelf") {
			kept = append(kept, rule)
		}
	}
	return kept
}
