package replication

import (
	"strings"
	"testing"
	"time"
)

// sound is the volume of a member that works and has room.
func sound(_ *testing.T, s *Status) {
	s.Probe, s.Disk = VolumeProbe{IsKnown: true}, Disk{Size: 100, Free: 50}
}

// onVolumes is a healthy cluster whose replicas have sound volumes, and whose primary has another one.
func onVolumes(t *testing.T, replicas, acks int, primary saying) *story {
	t.Helper()
	s := healthy(t, replicas, acks)
	for ordinal := range replicas {
		sound(t, s.c.Members[ordinal].Status)
	}
	primary(t, s.c.Members[0].Status)
	return s
}

func standsFor(long time.Duration) saying {
	return func(_ *testing.T, s *Status) { s.Probe.StuckFor = long }
}

func failingFor(long time.Duration) saying {
	return func(_ *testing.T, s *Status) { s.Probe.FailingFor, s.Probe.Failure = long, "input/output error" }
}

// fullFor is a full volume on which commits hang for so many seconds.
func fullFor(seconds int) saying {
	return func(_ *testing.T, s *Status) {
		s.Disk = Disk{Size: 100, Level: DiskFull}
		s.Transactions.CommitWaitSeconds = int64(seconds)
	}
}

// beside gives a replica another volume.
func (s *story) beside(ordinal int, says ...saying) *story {
	for _, say := range says {
		say(s.t, s.c.Members[ordinal].Status)
	}
	return s
}

func stoodStill(_ *testing.T, s *Status) { s.Probe.WasUnsound = true }

func filling(_ *testing.T, s *Status) { s.Disk.Level = DiskPressure }

func TestDecideReplacesAPrimaryWhoseVolumeFails(t *testing.T) {
	t.Parallel()
	whole, long := []string{"db-0", "db-1", "db-2"}, int(HangAfter.Seconds())
	stands, fails, full := standsFor(StuckAfter), failingFor(FailingAfter), fullFor(long)
	apart := func(ago time.Duration) func(*Cluster) { return func(c *Cluster) { c.SinceTakeover = ago } }
	replaced, kept := fencing(1, whole...), rec(1, 1, whole...)
	stories := map[string]struct {
		story *story
		want  Record
	}{
		"its volume works":                            {onVolumes(t, 3, 1, sound), kept},
		"it stands still for ten seconds":             {onVolumes(t, 3, 1, stands), replaced},
		"it stands still for nine":                    {onVolumes(t, 3, 1, standsFor(StuckAfter-time.Second)), kept},
		"network storage takes two seconds":           {onVolumes(t, 3, 1, standsFor(2*time.Second)), kept},
		"the user waits longer for a primary":         {onVolumes(t, 3, 1, stands).with(func(c *Cluster) { c.Limits.NotReady = time.Minute }), kept},
		"the user waits less for a primary":           {onVolumes(t, 3, 1, standsFor(StuckAfter-time.Second)).with(func(c *Cluster) { c.Limits.NotReady = time.Second }), kept},
		"it returns errors":                           {onVolumes(t, 3, 1, fails), replaced},
		"it has returned one":                         {onVolumes(t, 3, 1, failingFor(time.Second)), kept},
		"it has returned one, and stands still since": {onVolumes(t, 3, 1, failingFor(time.Second)).beside(0, stands), replaced},
		"it has returned one, and is slow since": {
			onVolumes(t, 3, 1, failingFor(time.Second)).beside(0, standsFor(StuckAfter-time.Second)), kept},
		"it returns errors, and the next write does not return": {onVolumes(t, 3, 1, fails).beside(0, standsFor(time.Second)), replaced},
		"it is full, and commits hang":                          {onVolumes(t, 3, 1, full), replaced},
		"it is full, and commits hang since just now":           {onVolumes(t, 3, 1, fullFor(long-1)), kept},
		"it is full, and no client commits":                     {onVolumes(t, 3, 1, fullFor(0)), kept},
		"commits hang, and it has room":                         {onVolumes(t, 3, 1, full).beside(0, sound), kept},
		"it is full, and commits hang because replicas do not acknowledge": {
			onVolumes(t, 3, 1, full).beside(0, shortFor(1)), kept},
		"a pair": {onVolumes(t, 2, 1, stands), fencing(1, whole[:2]...)},
		"it has just started, and opens": {
			onVolumes(t, 3, 1, stands).with(func(c *Cluster) { c.Members[0].Status.State = StatePromoting }), replaced},

		"the volume of the replica that would win stands still, and the other one's works: that one wins": {
			onVolumes(t, 3, 2, stands).beside(1, standsFor(StuckLeast)), fencing(2, whole...)},
		"so does the volume of a replica that must store that it acknowledges no more": {
			onVolumes(t, 3, 1, stands).beside(2, standsFor(StuckLeast)), kept},
		"all volumes stand still, as on storage that all share": {
			onVolumes(t, 3, 1, stands).beside(1, stands).beside(2, stands), kept},
		"the only replica with everything has a volume that fails": {
			onVolumes(t, 3, 1, stands).beside(1, has("A:1-12"), fails), kept},
		"that replica's volume stood still a short while ago": {
			onVolumes(t, 3, 1, stands).beside(1, has("A:1-12"), stoodStill), kept},
		"mysqld may try again, because there is room": {
			onVolumes(t, 3, 1, full).beside(0, func(_ *testing.T, s *Status) { s.Disk.Free = nearlyNone }), kept},
		"it has tried again in vain": {
			onVolumes(t, 3, 1, fullFor(int(HangsWithRoom.Seconds()))).beside(0, func(_ *testing.T, s *Status) { s.Disk.Free = nearlyNone }), replaced},
		"mysqld has ended, and a replica that must store that it acknowledges no more cannot": {
			downPrimary(t, 3, 1).beside(1, sound).beside(2, sound, stands), kept},
		"all volumes are full": {
			onVolumes(t, 3, 1, full).beside(1, full).beside(2, full), kept},
		"the volumes of the replicas fill up, too": {
			onVolumes(t, 3, 1, full).beside(1, filling).beside(2, filling), kept},
		"it stands still, and the volumes of the replicas fill up": {
			onVolumes(t, 3, 1, stands).beside(1, filling).beside(2, filling), replaced},
		"it stands still, and the volumes of the replicas are full": {
			onVolumes(t, 3, 1, stands).beside(1, full).beside(2, full), kept},
		"agents of an earlier release do not say how the volumes of the replicas are": {
			onVolumes(t, 3, 1, stands).beside(1, silentVolume).beside(2, silentVolume), kept},
		"a replica that may have acknowledged does not answer": {
			onVolumes(t, 3, 1, stands).silent(2), kept},
		"the replica that has everything has not applied it": {
			behind(t, onVolumes(t, 3, 1, stands)).beside(1, sound), kept},
		"commits needed no acknowledgement": {
			onVolumes(t, 3, 0, stands), rec(1, 0, whole...)},

		"it has taken over a moment ago": {
			onVolumes(t, 3, 1, stands).with(apart(PauseAfterTakeover - time.Second)), kept},
		"it has taken over a minute ago": {
			onVolumes(t, 3, 1, stands).with(apart(PauseAfterTakeover)), replaced},
		"clients have filled one volume, and then another": {
			onVolumes(t, 3, 1, full).with(apart(PauseWhileFull - time.Second)), kept},
		"clients fill one in ten minutes": {
			onVolumes(t, 3, 1, full).with(apart(PauseWhileFull)), replaced},
		"its volume has been full, and mysqld cannot start": {
			downPrimary(t, 3, 1).beside(0, func(_ *testing.T, s *Status) { s.Disk.Level = DiskFull }), replaced},
	}
	for name, told := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRecord(t, told.story, told.want)
		})
	}
}

func silentVolume(_ *testing.T, s *Status) { s.Probe, s.Disk = VolumeProbe{}, Disk{} }

// TestDecideTellsWhyAPrimaryStaysWhoseVolumeFails: users read what is wrong, and why no replica takes over.
func TestDecideTellsWhyAPrimaryStaysWhoseVolumeFails(t *testing.T) {
	t.Parallel()
	stands, full := standsFor(StuckAfter), fullFor(int(HangAfter.Seconds()))
	wantNote(t, onVolumes(t, 3, 1, stands).beside(1, stands).beside(2, stands), ReasonPrimaryDown, false, "has taken no write for more than 10 seconds", "the volume of db-1", "stands still or fails, too")
	wantNote(t, onVolumes(t, 3, 1, stands).beside(2, stands), ReasonPrimaryDown, false, "has taken no write for more than 10 seconds", "the volume of db-2, which must store")
	wantNote(t, onVolumes(t, 2, 1, full).beside(1, filling), ReasonPrimaryDown, false, "db-0 is full", "30 seconds", "the volume of db-1", "has little room, too")
	wantNote(t, onVolumes(t, 2, 1, failingFor(time.Minute)).beside(1, silentVolume), ReasonPrimaryDown, false, "input/output error", "is not known")
	wantNote(t, onVolumes(t, 3, 0, stands), ReasonPrimaryDown, false, "on the primary alone")
	if note := Decide(onVolumes(t, 3, 1, stands).c).Note; note == nil || note.Reason != ReasonReplacingPrimary || !strings.Contains(note.Message, "the volume of the primary db-0") {
		t.Errorf("while it is replaced, users read %+v", note)
	}
}

// TestWhetherAReplicaCouldTakeOverDependsOnItsVolume: each that is needed must store that it acknowledges no more.
func TestWhetherAReplicaCouldTakeOverDependsOnItsVolume(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		story   *story
		isReady bool
		says    string
	}{
		"all work":                     {onVolumes(t, 3, 1, sound), true, "db-1 or db-2 takes over"},
		"one is slow":                  {onVolumes(t, 3, 1, sound).beside(2, standsFor(StuckLeast)), true, "db-1 or db-2 takes over"},
		"one that is needed fails":     {onVolumes(t, 3, 1, sound).beside(2, failingFor(FailingAfter)), false, "the volume of db-2"},
		"one that is not needed fails": {onVolumes(t, 3, 2, sound).beside(2, standsFor(StuckAfter)), true, "db-1 takes over"},
		"all fail":                     {onVolumes(t, 3, 2, sound).beside(1, standsFor(StuckAfter)).beside(2, standsFor(StuckAfter)), false, "the volume of db-1"},
	} {
		if isReady, _, message := test.story.c.Failover(); isReady != test.isReady || !strings.HasPrefix(message, test.says) {
			t.Errorf("%s: ready: %t, %s", name, isReady, message)
		}
	}
}

// TestAPrimaryWhoseVolumeStandsStillNeedNotClose: its process may not end. Another member is chosen once its lease has ended.
func TestAPrimaryWhoseVolumeStandsStillNeedNotClose(t *testing.T) {
	t.Parallel()
	stuck := func(silent time.Duration) *story {
		s := awaiting(t, 3, 1, silent).hears(0, StateWriting, stopped(fencing(1, "db-0", "db-1", "db-2")))
		return s.beside(0, sound, standsFor(time.Minute)).beside(1, sound).beside(2, sound)
	}
	limit := Record{LeaseLasts: ShortLease}.leaseLimit()
	if got := Decide(stuck(limit - time.Millisecond).c); got.Record.Primary != "" || got.Note == nil {
		t.Errorf("before its lease has ended, the record is %+v", got.Record)
	}
	if got := Decide(stuck(limit).c).Record; got.Primary != "db-1" || got.Acknowledges("db-0") {
		t.Errorf("after its lease has ended, the record is %+v", got)
	}
	if within, waits := onVolumes(t, 3, 1, standsFor(StuckAfter)).with(func(c *Cluster) { c.Record.LeaseLasts = ShortLease }).c.closes(Member{Name: "db-0", Status: &Status{Probe: VolumeProbe{StuckFor: StuckAfter}}}); within < 3 || !strings.Contains(waits, "its lease of 2.5s") {
		t.Errorf("a takeover takes %d s: %s", within, waits)
	}
}

// TestAStuckVolumeIsNews when the primary may be replaced for it, and not before: network storage is slow at times.
func TestAStuckVolumeIsNews(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		probe  VolumeProbe
		isNews bool
	}{
		"slow":  {VolumeProbe{IsKnown: true, StuckFor: 2 * time.Second}, false},
		"stuck": {VolumeProbe{IsKnown: true, StuckFor: StuckAfter}, true},
		"fails": {VolumeProbe{IsKnown: true, FailingFor: FailingAfter}, true},
	} {
		if got := (Status{Probe: test.probe}).News() != (Status{}).News(); got != test.isNews {
			t.Errorf("%s: it is news: %t", name, got)
		}
	}
}

// TestSinceWhenAVolumeHasFailed: clients could not write since then.
func TestSinceWhenAVolumeHasFailed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		primary saying
		want    time.Duration
	}{
		"it works":         {sound, 0},
		"it stands still":  {standsFor(12 * time.Second), 12 * time.Second},
		"it fails":         {failingFor(4 * time.Second), 4 * time.Second},
		"it is full":       {fullFor(31), 31 * time.Second},
		"no client writes": {fullFor(0), 0},
	} {
		if got := onVolumes(t, 3, 1, test.primary).c.FailedFor(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
