package schedule

import (
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// restores is a cluster in a namespace that is restored from a backup.
func restores(t *testing.T, namespace string, set func(*v1.MySQLCluster)) *unstructured.Unstructured {
	t.Helper()
	cluster := v1.MySQLCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: schema.MySQLGroup + "/v1", Kind: "MySQLCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: "copy", Namespace: namespace},
	}
	set(&cluster)
	content, err := schema.Encode(cluster)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func by(url string) func(*v1.MySQLCluster) {
	return func(cluster *v1.MySQLCluster) { cluster.Spec.FromBackupURL = url }
}

// TestWhoIsRestoredFrom: the folder is the same, for every spelling of its URL and from every namespace.
func TestWhoIsRestoredFrom(t *testing.T) {
	t.Parallel()
	const folder = "s3://bucket/shop/db/nightly-2026-06-01-03-00-00"
	for name, test := range map[string]struct {
		namespace string
		cluster   func(*v1.MySQLCluster)
		is        bool
	}{
		"the very text":                  {"shop", by(folder + "?endpoint=https%3A%2F%2Fs3.example.com&region=eu"), true},
		"a slash at the end":             {"shop", by(folder + "/?endpoint=https%3A%2F%2Fs3.example.com&region=eu"), true},
		"the options in another order":   {"shop", by(folder + "?region=eu&endpoint=https%3A%2F%2Fs3.example.com"), true},
		"the endpoint not escaped":       {"shop", by(folder + "?endpoint=https://s3.example.com&region=eu"), true},
		"another name of the server":     {"drill", by(folder + "?endpoint=http://minio.storage.svc:9000"), true},
		"an alias of the bucket":         {"drill", by("s3://alias/shop/db/nightly-2026-06-01-03-00-00"), true},
		"from another namespace":         {"drill", by(folder), true},
		"by name":                        {"shop", func(cluster *v1.MySQLCluster) { cluster.Spec.FromBackup = "nightly-2026-06-01-03-00-00" }, true},
		"that name in another namespace": {"drill", func(cluster *v1.MySQLCluster) { cluster.Spec.FromBackup = "nightly-2026-06-01-03-00-00" }, false},
		"another backup":                 {"shop", by("s3://bucket/shop/db/nightly-2026-06-02-03-00-00"), false},
		"that of another namespace":      {"shop", by("s3://bucket/drill/db/nightly-2026-06-01-03-00-00"), false},
		"a URL that cannot be parsed":    {"shop", by(folder + "/%zz"), false},
		"no backup":                      {"shop", func(*v1.MySQLCluster) {}, false},
	} {
		keys := sourceKeys(restores(t, test.namespace, test.cluster))
		want := []string{"shop/nightly-2026-06-01-03-00-00"}
		if is := cmp.Equal(keys, want); is != test.is {
			t.Errorf("%s: the index keys are %v; they name the backup: %v, want %v", name, keys, is, test.is)
		}
	}
}

func TestNeededUntilTheDataIsThere(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for name, test := range map[string]struct {
		set  func(*v1.MySQLCluster)
		want bool
	}{
		"it was only created":    {func(*v1.MySQLCluster) {}, true},
		"the restore runs":       {func(c *v1.MySQLCluster) { c.Status.Restore = &v1.RestoreStatus{Phase: v1.RestoreRunning} }, true},
		"the restore has failed": {func(c *v1.MySQLCluster) { c.Status.Restore = &v1.RestoreStatus{Phase: v1.RestoreFailed} }, true},
		"the restore is over":    {func(c *v1.MySQLCluster) { c.Status.Restore = &v1.RestoreStatus{Phase: v1.RestoreCompleted} }, false},
		"there is a primary":     {func(c *v1.MySQLCluster) { c.Status.Primary = "copy-0" }, false},
		"it is being deleted":    {func(c *v1.MySQLCluster) { c.DeletionTimestamp = &now }, false},
	} {
		got, err := needed(restores(t, "shop", test.set))
		if err != nil || got != test.want {
			t.Errorf("%s: needed %v (%v), want %v", name, got, err, test.want)
		}
	}
}

// TestWhoseMarkCounts: a mark of an earlier schedule with that name does not count. Such a backup is marked again before it is deleted, or
// spared.
func TestWhoseMarkCounts(t *testing.T) {
	t.Parallel()
	own := v1.MySQLBackupSchedule{ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: "uid-nightly"}}
	for name, test := range map[string]struct {
		mark      string
		held      bool
		condemned bool
		ready     bool
	}{
		"no mark, with a policy":             {held: true},
		"its own":                            {mark: "uid-nightly", held: true, condemned: true, ready: true},
		"its own, without the finalizer":     {mark: "uid-nightly", condemned: true},
		"of an earlier build, without a UID": {mark: "true", held: true, condemned: true, ready: true},
		"of the schedule before":             {mark: "uid-before", held: true, condemned: true},
	} {
		made := v1.MySQLBackupInstance{}
		if test.mark != "" {
			made.Annotations = map[string]string{transfer.AnnotationExpired: test.mark}
		}
		if test.held {
			made.Finalizers = []string{transfer.FinalizerData}
		}
		if got := instanceFrom(own, made); got.isMarked != test.condemned || got.ready != test.ready {
			t.Errorf("%s: condemned %t and ready %t, want %t and %t", name, got.isMarked, got.ready, test.condemned, test.ready)
		}
	}
}

// listed are schedules in a cache.
type listed []*unstructured.Unstructured

func (l listed) Get(namespace, name string) (*unstructured.Unstructured, bool) {
	for _, one := range l {
		if one.GetNamespace() == namespace && one.GetName() == name {
			return one, true
		}
	}
	return nil, false
}

func (l listed) All() iter.Seq[*unstructured.Unstructured] {
	panic("a change of one cluster must not list all schedules")
}

func (l listed) Owned(types.UID) []*unstructured.Unstructured { return nil }

func (l listed) Indexed(_, key string) []*unstructured.Unstructured {
	found := []*unstructured.Unstructured{}
	for _, one := range l {
		if cmp.Equal(clusterOf(one), []string{key}) {
			found = append(found, one)
		}
	}
	return found
}

func TestSchedulesThatAChangeOfAClusterConcerns(t *testing.T) {
	t.Parallel()
	schedules := listed{}
	for _, one := range []struct{ namespace, name, cluster string }{
		{"shop", "copies", "copy"}, {"shop", "nightly", "db"}, {"shop", "nightly-full", "db"}, {"shop", "night", "db"}, {"drill", "nightly", "copy"}, {"drill", "weekly", "db"},
	} {
		made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"cluster": one.cluster}}}
		made.SetNamespace(one.namespace)
		made.SetName(one.name)
		schedules = append(schedules, made)
	}
	for name, test := range map[string]struct {
		namespace string
		cluster   func(*v1.MySQLCluster)
		want      []string
	}{
		"it is backed up":                   {"shop", func(*v1.MySQLCluster) {}, []string{"shop/copies"}},
		"restored from a backup, by name":   {"shop", func(c *v1.MySQLCluster) { c.Spec.FromBackup = "nightly-2026-06-01-03-00-00" }, []string{"shop/copies", "shop/nightly"}},
		"of a schedule with a long name":    {"shop", func(c *v1.MySQLCluster) { c.Spec.FromBackup = "nightly-full-2026-06-01-03-00-00" }, []string{"shop/copies", "shop/nightly", "shop/nightly-full"}},
		"by URL":                            {"shop", by("s3://b/shop/db/nightly-2026-06-01-03-00-00"), []string{"shop/copies", "shop/nightly"}},
		"by URL, from another namespace":    {"drill", by("s3://b/x/shop/db/nightly-2026-06-01-03-00-00/?region=eu"), []string{"drill/nightly", "shop/nightly"}},
		"of a schedule that does not exist": {"prod", by("s3://b/prod/db/nightly-2026-06-01-03-00-00"), []string{}},
	} {
		got := []string{}
		for _, one := range schedulesOf(restores(t, test.namespace, test.cluster), schedules) {
			got = append(got, one.String())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
