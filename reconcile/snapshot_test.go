package reconcile

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// lagging is a view whose watch shows the objects in store, and whose live list finds those in live.
type lagging struct {
	*view
	store   cache.Indexer
	live    []*unstructured.Unstructured
	version string
	lists   int
	fails   error
}

func newLagging() *lagging {
	l := &lagging{store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		ownerIndex: controllerUID,
		indexName("Probe", "colour"): func(item any) ([]string, error) {
			object, _ := objectOf(item)
			return []string{object.GetLabels()["colour"]}, nil
		},
	})}
	l.view = &view{
		resource: configMaps(), selector: labels.Everything(), kind: "Probe",
		stores: map[string]cache.Indexer{metav1.NamespaceAll: l.store},
	}
	l.list = func(_ context.Context, namespace string) ([]any, string, error) {
		l.lists++
		items := []any{}
		for _, object := range l.live {
			if object.GetNamespace() == namespace {
				items = append(items, object)
			}
		}
		return items, l.version, l.fails
	}
	return l
}

func configMap(namespace, name, version string) *unstructured.Unstructured {
	object := newObject("v1", "ConfigMap", types.NamespacedName{Namespace: namespace, Name: name})
	object.SetUID(types.UID(namespace + "/" + name))
	object.SetResourceVersion(version)
	object.SetLabels(map[string]string{"colour": "red"})
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(ownerAt("1", "1"), ownerAt("1", "1").GroupVersionKind())})
	return object
}

func (l *lagging) shows(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if err := l.store.Update(object); err != nil {
		t.Fatal(err)
	}
}

// listed returns the objects of a namespace, or all for the empty string.
func (v *view) listed(namespace string) []*unstructured.Unstructured {
	return sorted(slices.DeleteFunc(slices.Collect(v.All()), func(object *unstructured.Unstructured) bool {
		return namespace != "" && object.GetNamespace() != namespace
	}))
}

func versions(found []*unstructured.Unstructured) []string {
	named := []string{}
	for _, object := range found {
		named = append(named, object.GetNamespace()+"/"+object.GetName()+"@"+object.GetResourceVersion())
	}
	return named
}

func TestALiveListReplacesACacheThatIsBehind(t *testing.T) {
	t.Parallel()
	l := newLagging()
	l.shows(t, configMap("a", "changed", "10"))
	l.shows(t, configMap("a", "deleted", "11"))
	l.shows(t, configMap("b", "elsewhere", "12"))
	l.live, l.version = []*unstructured.Unstructured{configMap("a", "changed", "20"), configMap("a", "made", "21")}, "30"
	if err := l.refresh(t.Context(), "a", time.Unix(100, 0)); err != nil {
		t.Fatal(err)
	}

	want := []string{"a/changed@20", "a/made@21", "b/elsewhere@12"}
	same(t, versions(l.listed("")), want)
	same(t, versions(l.listed("a")), want[:2])
	same(t, versions(l.listed("b")), want[2:])
	same(t, versions(l.Owned("1")), want)
	same(t, versions(l.Indexed("colour", "red")), want)
	_, found := l.Get("a", "deleted")
	same(t, found, false)
	same(t, l.reached("a", "30"), true)
	same(t, l.reached("b", "30"), false)

	// The watch catches up.
	l.shows(t, configMap("a", "changed", "40"))
	same(t, versions(l.listed("a")), []string{"a/changed@40", "a/deleted@11"})
	same(t, l.snapshotOf("a") == nil, true)
}

func TestALiveListIsDroppedWhereTheCacheShowsItAll(t *testing.T) {
	t.Parallel()
	l := newLagging()
	l.shows(t, configMap("a", "one", "10"))
	l.live, l.version = []*unstructured.Unstructured{configMap("a", "one", "10")}, "500" // other resources' writes
	if err := l.refresh(t.Context(), "a", time.Unix(100, 0)); err != nil {
		t.Fatal(err)
	}
	same(t, l.snapshotOf("a") == nil, true)
}

func TestPassesOfAMomentShareALiveList(t *testing.T) {
	t.Parallel()
	l := newLagging()
	l.live, l.version = []*unstructured.Unstructured{configMap("a", "one", "10")}, "10"
	clock := time.Unix(100, 0)
	for range 100 {
		if err := l.refresh(t.Context(), "a", clock); err != nil {
			t.Fatal(err)
		}
	}
	same(t, l.lists, 1)

	// The cache catches up, is read, and something else makes the passes live: the API server is not asked again at once.
	l.shows(t, configMap("a", "one", "20"))
	same(t, versions(l.listed("a")), []string{"a/one@20"})
	if err := l.refresh(t.Context(), "a", clock.Add(freshFor/2)); err != nil {
		t.Fatal(err)
	}
	same(t, l.lists, 1)
	if err := l.refresh(t.Context(), "a", clock.Add(freshFor)); err != nil {
		t.Fatal(err)
	}
	same(t, l.lists, 2)
}

// The list of one namespace hangs: passes of another namespace list theirs meanwhile.
func TestASlowListHoldsUpItsNamespaceAlone(t *testing.T) {
	t.Parallel()
	l := newLagging()
	l.live, l.version = []*unstructured.Unstructured{configMap("b", "one", "10")}, "10"
	quick, begun, hangs := l.list, make(chan struct{}), make(chan struct{})
	l.list = func(ctx context.Context, namespace string) ([]any, string, error) {
		if namespace == "a" {
			close(begun)
			<-hangs
		}
		return quick(ctx, namespace)
	}
	slow := make(chan error)
	go func() { slow <- l.refresh(t.Context(), "a", time.Unix(100, 0)) }()
	<-begun
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	same(t, l.refresh(soon, "b", time.Unix(100, 0)) == nil, true)
	same(t, versions(l.listed("b")), []string{"b/one@10"})
	close(hangs)
	same(t, <-slow == nil, true)
}

func TestAListThatFailedIsNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	l := newLagging()
	l.fails = errors.New("the API server is slow")
	clock := time.Unix(100, 0)
	for range 100 {
		same(t, errors.Is(l.refresh(t.Context(), "a", clock), l.fails), true)
	}
	same(t, l.lists, 1)
	same(t, errors.Is(l.refresh(t.Context(), "b", clock), l.fails), true)
	same(t, l.lists, 2)

	// A list that was cancelled says nothing about the API server: the next pass lists again.
	given, cancel := context.WithCancel(t.Context())
	cancel()
	clock = clock.Add(freshFor)
	same(t, l.refresh(given, "a", clock) != nil, true)
	l.fails = nil
	same(t, l.refresh(t.Context(), "a", clock) == nil, true)
}

// Namespaces come and go. Of namespaces that were listed while the watch was behind, the view keeps nothing after the watch has caught up.
func TestNothingIsKeptOfListsThatAreOver(t *testing.T) {
	t.Parallel()
	l := newLagging()
	l.version = "10"
	clock := time.Unix(100, 0)
	for number := range 100 {
		namespace := "shop-" + strconv.Itoa(number)
		l.live = []*unstructured.Unstructured{configMap(namespace, "one", "10")}
		if err := l.refresh(t.Context(), namespace, clock); err != nil {
			t.Fatal(err)
		}
	}
	kind := &controller{caches: map[apischema.GroupVersionResource]*view{configMaps(): l.view}}
	same(t, kind.isBehind("shop-7", clock), true)
	same(t, []int{len(l.snapshots), len(l.view.lists)}, []int{100, 100})

	l.shows(t, configMap("another", "one", "20"))
	same(t, kind.isBehind("shop-7", clock.Add(freshFor)), false)
	same(t, []int{len(l.snapshots), len(l.view.lists)}, []int{0, 0})
}

func TestForHowLongAListCounts(t *testing.T) {
	t.Parallel()
	began := time.Unix(100, 0)
	for story, test := range map[string]struct {
		last listing
		now  time.Time
		want bool
	}{
		"there was none":                       {listing{}, time.Unix(0, 0), false},
		"a quick one of a moment ago":          {listing{at: began, took: time.Millisecond}, began.Add(freshFor - 1), true},
		"a quick one of some time ago":         {listing{at: began, took: time.Millisecond}, began.Add(freshFor), false},
		"one that took its time":               {listing{at: began, took: time.Second}, began.Add(listShare*time.Second - 1), true},
		"one that timed out, and has had rest": {listing{at: began, took: closingTime, err: context.DeadlineExceeded}, began.Add(closingTime * 3 / 2), false},
		"one that has just timed out":          {listing{at: began, took: closingTime, err: context.DeadlineExceeded}, began.Add(closingTime + freshFor), true},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			same(t, test.last.isRecent(test.now), test.want)
		})
	}
}

// single makes a child if the caches show none, as a schedule that forbids a second concurrent backup.
type single struct{ made int }

// Reconcile implements Reconciler.
func (s *single) Reconcile(ctx context.Context, client *Client, object *unstructured.Unstructured) (Outcome, error) {
	if len(client.Cached(configMaps()).Owned(object.GetUID())) > 0 {
		return Outcome{}, nil
	}
	s.made++
	_, err := client.Create(ctx, newObject("v1", "ConfigMap", types.NamespacedName{Namespace: "shop", Name: "n" + strconv.Itoa(s.made)}))
	return Outcome{}, err
}

func TestAPassNeverDecidesOnACacheThatLacksItsOwnWrites(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	children := newLagging()
	s.controller.caches[configMaps()] = children.view
	maker := &single{}
	s.reconciler = maker
	clock := time.Unix(1000, 0)
	s.journal.now = func() time.Time { return clock }
	s.shows(t, ownerAt("1", "10"))
	s.has(ownerAt("1", "10"))
	s.answers(func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		switch request.Method {
		case http.MethodPost:
			child := configMap("shop", "n1", "20")
			children.live, children.version = append(children.live, child), "20"
			document, _ := child.MarshalJSON()
			_, _ = answer.Write(document)
		default:
			document, _ := ownerAt("1", "10").MarshalJSON()
			_, _ = answer.Write(document)
		}
	})

	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, maker.made, 1)
	same(t, s.attempt(t.Context(), owner()).result, resultBehind)

	// If the live list fails, there is no pass.
	clock = clock.Add(barrierPatience + time.Second)
	children.fails = errors.New("the API server is slow")
	same(t, s.attempt(t.Context(), owner()).result, resultFailed)
	children.fails = nil
	for range 3 {
		clock = clock.Add(time.Minute)
		same(t, s.attempt(t.Context(), owner()).result, resultDone)
	}
	same(t, maker.made, 1)
	same(t, children.lists, 4)

	// The watch catches up: no pass lists any more.
	children.shows(t, configMap("shop", "n1", "20"))
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, children.lists, 4)
	same(t, maker.made, 1)
}

// A user deleted what a pass had made while the watch was stuck: the list finds only what the cache has, and the pass begins.
func TestAPassDoesNotWaitForWhatSomebodyDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	children := newLagging()
	children.shows(t, configMap("shop", "other", "10"))
	children.live, children.version = []*unstructured.Unstructured{configMap("shop", "other", "10")}, "30"
	s.controller.caches[configMaps()] = children.view
	maker := &single{}
	s.reconciler = maker
	clock := time.Unix(1000, 0)
	s.journal.now = func() time.Time { return clock }
	s.shows(t, ownerAt("1", "10"))
	s.has(ownerAt("1", "10"))
	s.visit(pass{key: owner(), uid: "1"})
	s.journal.wrote(pass{key: owner(), uid: "1"}, configMaps(), configMap("shop", "gone", "20"))

	same(t, s.attempt(t.Context(), owner()).result, resultBehind)
	clock = clock.Add(barrierPatience + time.Second)
	for range 10 {
		same(t, s.attempt(t.Context(), owner()).result, resultDone)
	}
	same(t, children.lists, 1)

	// The view keeps nothing of the list after the watch has passed it.
	children.shows(t, configMap("shop", "other", "40"))
	same(t, s.attempt(t.Context(), owner()).result, resultDone)
	same(t, children.snapshotOf("shop") == nil, true)
}
