package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/mysql-operator/mysql-operator/crds/migration"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

const (
	// appliedEach: one of so many objects was made by server-side apply.
	appliedEach = 20
	// editEvery is how often each of the two editors writes.
	editEvery = 50 * time.Millisecond
)

// TestMigrationOfManyObjects is an upgrade that drops a version: 4,000 objects, edited meanwhile, or MIGRATION_OBJECTS of them; the
// operator dies, the API server, too.
func TestMigrationOfManyObjects(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 0)
	server := apiserver.Own(t)
	a := newArchive(t, server, "volumes", "v1 served storage")
	l := library{archive: a, many: fromEnvironment("MIGRATION_OBJECTS", 4_000), edits: map[string]int64{}, gone: map[string]bool{}}
	t.Logf("%d objects made in %v", l.many, within(l.fill))
	a.define("v1", "v2 served storage")
	if got, want := a.storedIn(), fmt.Sprintf("%d in v1", l.many); got != want {
		t.Fatalf("before: %s, want %s", got, want)
	}

	stopEditing := l.edit()
	l.killedInTheMiddle()
	l.resumedThroughACrash()
	stopEditing()

	a.define("v2 served storage") // the API server refuses this while v1 is in status.storedVersions
	l.intact()
}

// library knows what its volumes must hold.
type library struct {
	archive
	many  int
	lock  sync.Mutex
	edits map[string]int64 // the last acknowledged edit of each volume that was edited
	gone  map[string]bool  // deleted
}

// killedAt is the patch of the first run at which it is killed.
func (l *library) killedAt() int { return l.many * 2 / 5 }

// crashAt is the patch of the second run at which the API server crashes.
func (l *library) crashAt() int { return l.many * 3 / 20 }

func volume(number int) string { return fmt.Sprintf("volume-%05d", number) }

// fill has two objects made by the API server, and the others by their example: that is as good and takes a tenth of the time.
func (l *library) fill() {
	if _, err := l.objects("v1").Create(l.t.Context(), l.object("v1", volume(1), spec(1)), metav1.CreateOptions{FieldManager: "owner"}); err != nil {
		l.t.Fatal(err)
	}
	l.mustApply("v1", volume(0), "owner", spec(0))
	prefix := fmt.Sprintf("/registry/%s/%s/%s/", archiveGroup, l.plural, l.namespace)
	examples, copies := l.Stored(l.t, prefix), map[string][]byte{}
	for number := 2; number < l.many; number++ {
		example := examples[prefix+volume(min(number%appliedEach, 1))]
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(example, &object.Object); err != nil {
			l.t.Fatal(err)
		}
		object.SetName(volume(number))
		object.SetUID(uuid.NewUUID())
		object.Object["spec"] = spec(number)
		content, err := json.Marshal(object.Object)
		if err != nil {
			l.t.Fatal(err)
		}
		copies[prefix+volume(number)] = content
	}
	l.Store(l.t, copies)
}

// spec is what a volume holds, but for later edits.
func spec(number int) map[string]any {
	return map[string]any{"number": int64(number), "text": strings.Repeat("x", number%100), "note": "first"}
}

// edit has objects edited and deleted all the time, by merge patches that are repeated until they are acknowledged.
func (l *library) edit() (stop func()) {
	ctx, cancel := context.WithCancel(l.t.Context())
	var group sync.WaitGroup
	for editor := range 2 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(editor)))
			pace := time.NewTicker(editEvery)
			defer pace.Stop()
			for edit := int64(1); ctx.Err() == nil; edit++ {
				<-pace.C
				// Each editor has volumes of its own, so that the last edit is known.
				l.change(volume(random.IntN(l.many/2)*2+editor), edit)
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
		l.t.Logf("%d objects were edited meanwhile, %d deleted", len(l.edits), len(l.gone))
		if len(l.edits) < 100 || len(l.gone) < 3 {
			l.t.Error("too few to prove anything")
		}
	}
}

// change edits one volume; each fiftieth time it deletes it.
func (l *library) change(name string, edit int64) {
	remove := edit%50 == 0
	for {
		var err error
		if remove {
			err = l.objects("v2").Delete(l.t.Context(), name, metav1.DeleteOptions{})
		} else {
			body := fmt.Appendf(nil, `{"spec":{"edits":%d}}`, edit)
			_, err = l.objects("v2").Patch(l.t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "editor"})
		}
		if l.acknowledged(name, edit, remove, err) {
			return
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // the API server is down
	}
}

// acknowledged remembers what is known to have taken effect; false if the change must be made again.
func (l *library) acknowledged(name string, edit int64, remove bool, err error) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	switch {
	case apierrors.IsNotFound(err) && !remove && !l.gone[name]:
		l.t.Errorf("%s is lost", name)
	case err != nil && !apierrors.IsNotFound(err):
		return l.t.Context().Err() != nil
	case remove:
		l.gone[name] = true
	case err == nil:
		l.edits[name] = edit
	}
	return true
}

// killedInTheMiddle is a run that ends with its process.
func (l *library) killedInTheMiddle() {
	ctx, kill := context.WithCancel(l.t.Context())
	var killed time.Time
	var once sync.Once
	seen := &traffic{at: func(patch int64) {
		if patch >= int64(l.killedAt()) {
			once.Do(func() { killed = time.Now(); kill() })
		}
	}}
	result, err := l.migrator(seen).Run(ctx, l.name())
	if took := time.Since(killed); took > time.Second {
		l.t.Errorf("it went on for %v", took)
	}
	if !errors.Is(err, context.Canceled) || result.Trimmed {
		l.t.Errorf("killed: result %+v, error %v", result, err)
	}
	l.t.Logf("killed: %.0f objects/s, %s", result.Progress.Rate, l.storedIn())
	l.wantStoredVersions("v1", "v2")
	if l.definition().Annotations[migrationCursor] == "" {
		l.t.Error("there is no cursor")
	}
}

// resumedThroughACrash is the next run; the API server dies meanwhile.
func (l *library) resumedThroughACrash() {
	crash, crashed := make(chan struct{}), false
	seen := &traffic{at: func(patch int64) {
		if patch == int64(l.crashAt()) {
			close(crash)
		}
	}}
	type outcome struct {
		result migration.Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := l.migrator(seen).Run(l.t.Context(), l.name())
		done <- outcome{result, err}
	}()
	var end outcome
	for end.result.Progress.To == "" {
		select {
		case <-crash:
			l.Kill(l.t)
			l.Restart(l.t)
			crash, crashed = nil, true
		case end = <-done:
			if end.err != nil {
				l.t.Fatal(end.err)
			}
		}
	}
	p := end.result.Progress
	if !crashed || !end.result.Trimmed || !p.Resumed || p.Done+p.Skipped != p.Total {
		l.t.Errorf("resumed: crashed %v, result %+v", crashed, end.result)
	}
	// The cursor may be 1,000 objects and a page behind: it is written at the end of a page.
	if rewritten := seen.count(); rewritten > l.many-l.killedAt()+1_000+migration.DefaultPageSize {
		l.t.Errorf("%d objects were rewritten: the cursor was not used", rewritten)
	}
	l.t.Logf("resumed: %d objects by %d patches, %.0f objects/s with the API server away for a while", seen.count(), seen.patches.Load(), p.Rate)
	l.wantStoredVersions("v2")
	if _, there := l.definition().Annotations[migrationCursor]; there {
		l.t.Error("the cursor is still there")
	}
}

// intact checks every object when v1 is gone from the definition.
func (l *library) intact() {
	if got, want := l.storedIn(), fmt.Sprintf("%d in v2", l.many-len(l.gone)); got != want {
		l.t.Errorf("stored: %s, want %s", got, want)
	}
	list, err := l.objects("v2").List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, object := range list.Items {
		holds, _ := object.Object["spec"].(map[string]any)
		number, _ := holds["number"].(int64)
		want, name := spec(int(number)), object.GetName()
		if edit, edited := l.edits[name]; edited {
			want["edits"] = edit
		}
		if diff := cmp.Diff(want, holds); diff != "" || name != volume(int(number)) {
			l.t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, entry := range object.GetManagedFields() {
			if entry.APIVersion != archiveGroup+"/v2" {
				l.t.Errorf("%s: managedFields still names %s", name, entry.APIVersion)
			}
		}
	}
	for number := 0; number < l.many; number += 10 * appliedEach {
		if l.gone[volume(number)] {
			continue
		}
		// The owner leaves out the note it applied as v1: it goes, because the owner still owns it.
		applied := l.mustApply("v2", volume(number), "owner", map[string]any{"number": number, "text": "again"})
		if holds, _ := applied.Object["spec"].(map[string]any); holds["note"] != nil || holds["text"] != "again" {
			l.t.Errorf("%s after applying: %v", volume(number), holds)
		}
	}
}
