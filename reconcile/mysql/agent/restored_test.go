package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

func someBackup() RestoredFrom {
	return RestoredFrom{UID: "one", Checksum: "sha256:1", URL: "s3://bucket/shop/db/nightly"}
}

// withRestoring puts a begun restore on the volume.
func withRestoring(t *testing.T, layout Layout) {
	t.Helper()
	if err := os.Mkdir(layout.RestoringDir(), 0o750); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(layout.RestoringDir(), "ibdata1"), "restored rows")
}

func keeping(t *testing.T, layout Layout, kept state) {
	t.Helper()
	if err := saveState(layout.stateFile(), kept); err != nil {
		t.Fatal(err)
	}
}

func TestLookAtVolumeTellsWhatThereIsToLose(t *testing.T) {
	t.Parallel()
	from := someBackup()
	held := replication.Record{Epoch: 3, Primary: "db-1"}
	tests := map[string]struct {
		data, restoring, used bool
		kept                  *state
		want                  VolumeState
		says                  string
	}{
		"a new volume":                          {want: VolumeEmpty},
		"an interrupted restore":                {restoring: true, want: VolumeUnfinished},
		"a restore that only had to be renamed": {restoring: true, kept: &state{Data: replication.OriginMember, RestoredFrom: &from}, want: VolumeStaged, says: from.URL},
		"restored data":                         {data: true, kept: &state{Data: replication.OriginMember, RestoredFrom: &from}, want: VolumeRestored, says: from.URL},
		"restored data, used for a year":        {data: true, kept: &state{Data: replication.OriginMember, RestoredFrom: &from, Held: held}, want: VolumeRestored, used: true, says: "has used since (of epoch 3, with primary db-1)"},
		"a member's data":                       {data: true, kept: &state{Data: replication.OriginMember, Held: held}, want: VolumeOccupied, says: "of epoch 3, with primary db-1"},
		"data that no client used":              {data: true, kept: &state{Data: replication.OriginFresh}, want: VolumeOccupied, says: "no cluster has used"},
		"data without a member.json":            {data: true, want: VolumeOccupied, says: "without a member.json"},
		"data next to a begun restore":          {data: true, restoring: true, want: VolumeOccupied},
		"an initialisation that made nothing":   {kept: &state{Data: replication.OriginInitializing}, want: VolumeEmpty},
		"a member that lost its data":           {kept: &state{Data: replication.OriginMember, Held: held}, want: VolumeOccupied, says: "member.json"},
		"restored data that is gone":            {kept: &state{Data: replication.OriginMember, RestoredFrom: &from}, want: VolumeOccupied, says: "member.json"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			if test.data {
				withData(t, layout)
			}
			if test.restoring {
				withRestoring(t, layout)
			}
			if test.kept != nil {
				keeping(t, layout, *test.kept)
			}
			found, err := LookAtVolume(layout)
			if err != nil || found.Contents != test.want || !strings.Contains(found.Description, test.says) {
				t.Fatalf("found %+v (%v), want %s, with the text %q", found, err, test.want, test.says)
			}
			if found.Used != test.used {
				t.Errorf("the data was used: %t", found.Used)
			}
			if wasRestored := found.Contents == VolumeStaged || found.Contents == VolumeRestored; wasRestored != (found.From == from) {
				t.Errorf("the data is from %+v", found.From)
			}
			_, err = BeginRestore(layout)
			var occupied *OccupiedError
			if mayBegin := test.want == VolumeEmpty || test.want == VolumeUnfinished; mayBegin != (err == nil) || !mayBegin && !errors.As(err, &occupied) {
				t.Errorf("a restore begins: %v", err)
			}
			if _, err := os.Stat(filepath.Join(layout.DataDir(), "ibdata1")); test.data && err != nil {
				t.Errorf("the former contents were changed: %v", err)
			}
		})
	}
}

func TestAVolumeThatCannotBeUnderstoodIsNotTouched(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	write(t, layout.stateFile(), `{"data": "Mem`)
	found, err := LookAtVolume(layout)
	if err != nil || found.Contents != VolumeOccupied || !strings.Contains(found.Description, "cannot be read") {
		t.Errorf("found %+v (%v)", found, err)
	}
}

func TestARestoreTakesItsPlaceInStepsThatCanBeRepeated(t *testing.T) {
	t.Parallel()
	from := someBackup()
	steps := map[string]func(*testing.T, Layout){
		"at once":                        func(*testing.T, Layout) {},
		"after a kill before the record": func(t *testing.T, l Layout) { t.Helper(); write(t, l.stateFile()+".new", "{") },
		"after a kill before the rename": func(t *testing.T, l Layout) {
			t.Helper()
			keeping(t, l, state{Data: replication.OriginMember, RestoredFrom: &from})
		},
		"where an empty folder stood":     func(t *testing.T, l Layout) { t.Helper(); must(t, os.Mkdir(l.DataDir(), 0o750)) },
		"where an initialisation stopped": func(t *testing.T, l Layout) { t.Helper(); keeping(t, l, state{Data: replication.OriginInitializing}) },
	}
	for name, before := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			folder, err := BeginRestore(layout)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(folder, "ibdata1"), "restored rows")
			before(t, layout)
			for range 2 {
				if err := FinishRestore(layout, from); err != nil {
					t.Fatal(err)
				}
				found, err := LookAtVolume(layout)
				if diff := cmp.Diff(VolumeContents{Contents: VolumeRestored, From: from, Description: found.Description}, found); diff != "" || err != nil {
					t.Fatalf("found: %s (%v)", diff, err)
				}
			}
			if got := read(t, filepath.Join(layout.DataDir(), "ibdata1")); got != "restored rows" {
				t.Errorf("the data is %q", got)
			}
			if err := Prepare(layout, who()); err != nil {
				t.Fatalf("the member does not start on the restored data: %v", err)
			}
			if strings.Contains(read(t, layout.initConfig()), "initialize_insecure") {
				t.Error("mysqld would create a data directory")
			}
			if kept := stateOf(t, layout); kept.Data != replication.OriginMember || kept.RestoredFrom == nil || kept.Held.Primary != "" {
				t.Errorf("the state is %+v", kept)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFinishRestoreOverwritesNothing(t *testing.T) {
	t.Parallel()
	from, other := someBackup(), RestoredFrom{UID: "two", Checksum: "sha256:2", URL: "file:///two"}
	tests := map[string]func(*testing.T, Layout){
		"a member's data":        func(t *testing.T, l Layout) { t.Helper(); withData(t, l); keeping(t, l, memberState()) },
		"data of unknown origin": func(t *testing.T, l Layout) { t.Helper(); withData(t, l) },
		"another backup's data": func(t *testing.T, l Layout) {
			t.Helper()
			withData(t, l)
			keeping(t, l, state{Data: replication.OriginMember, RestoredFrom: &other})
		},
		"another backup, staged": func(t *testing.T, l Layout) {
			t.Helper()
			withRestoring(t, l)
			keeping(t, l, state{Data: replication.OriginMember, RestoredFrom: &other})
		},
		"nothing was restored":    func(*testing.T, Layout) {},
		"a member without a data": func(t *testing.T, l Layout) { t.Helper(); withRestoring(t, l); keeping(t, l, memberState()) },
	}
	for name, before := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			before(t, layout)
			was, err := LookAtVolume(layout)
			must(t, err)
			if err := FinishRestore(layout, from); err == nil {
				t.Fatal("the restore was finished")
			}
			is, err := LookAtVolume(layout)
			if diff := cmp.Diff(was, is); diff != "" || err != nil {
				t.Errorf("FinishRestore changed the volume: %s (%v)", diff, err)
			}
		})
	}
}

func TestPrepareMakesNoEmptyDatabaseOfARestore(t *testing.T) {
	t.Parallel()
	from := someBackup()
	for name, kept := range map[string]*state{
		"that broke off": nil, "that broke off where mysqld once made data": {Data: replication.OriginFresh},
		"that had only to be renamed": {Data: replication.OriginMember, RestoredFrom: &from},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			withRestoring(t, layout)
			if kept != nil {
				keeping(t, layout, *kept)
			}
			err := Prepare(layout, who())
			if err == nil || !strings.Contains(err.Error(), "restore that was not finished") || !strings.Contains(err.Error(), "delete the volume's claim") {
				t.Errorf("got %v, want an error that names both ways to continue", err)
			}
			if _, err := os.Stat(filepath.Join(layout.RestoringDir(), "ibdata1")); err != nil {
				t.Errorf("what was restored is gone: %v", err)
			}
		})
	}
}

func TestABackupIsKnownAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		a, b RestoredFrom
		want bool
	}{
		"by its checksum, wherever it was moved": {RestoredFrom{Checksum: "1", URL: "a"}, RestoredFrom{Checksum: "1", URL: "b"}, true},
		"a checksum decides against everything":  {RestoredFrom{Checksum: "1", UID: "u", URL: "a"}, RestoredFrom{Checksum: "2", UID: "u", URL: "a"}, false},
		"by its instance":                        {RestoredFrom{UID: "u", URL: "a"}, RestoredFrom{UID: "u", Checksum: "1", URL: "b"}, true},
		"by its URL, if nothing else is known":   {RestoredFrom{UID: "u", Checksum: "1", URL: "a"}, RestoredFrom{URL: "a"}, true},
		"nothing is known of either":             {RestoredFrom{}, RestoredFrom{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.a.Is(test.b) != test.want || test.b.Is(test.a) != test.want {
				t.Errorf("%+v is %+v: want %t", test.a, test.b, test.want)
			}
		})
	}
}

// A member whose data a copy replaces, or that gets a role, still reports which backup it came from.
func TestWhereDataCameFromIsNotForgotten(t *testing.T) {
	t.Parallel()
	from, layout := someBackup(), newLayout(t)
	agent := newAgent(t, layout, state{Data: replication.OriginMember, RestoredFrom: &from})
	order := assignment(agent, 1, "db-1")
	order.Role = replication.RolePrimary
	must(t, agent.Assign(order))
	must(t, agent.keepOrigin(replication.OriginFresh))
	if kept := stateOf(t, layout); kept.RestoredFrom == nil || *kept.RestoredFrom != from || kept.Held.Epoch != 1 {
		t.Errorf("the state is %+v", kept)
	}
}
