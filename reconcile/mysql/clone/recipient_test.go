package clone

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const release uint32 = 90704

// TestRecipient has a donor's messages and the resulting calls of the Sink.
func TestRecipient(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		steps []step
		want  []string
	}{
		"a copy without DDL: files, pages, redo log": {
			steps: steps(taskBytes(), startBytes(snapshotFiles, 3), table(snapshotFiles, 0, "./ibdata1", 40), table(snapshotFiles, 1, "./a/b.ibd", 20),
				table(snapshotFiles, 2, "./a/c.ibd", 30), bytesOf(snapshotFiles, 0, 0, 15), bytesOf(snapshotFiles, 0, 15, 25), bytesOf(snapshotFiles, 2, 10, 5),
				endBytes(snapshotFiles), aliveBytes(snapshotFiles), startBytes(snapshotPages, 1), bytesOf(snapshotPages, 1, 5, 5), endBytes(snapshotPages),
				startBytes(snapshotRedo, 2), redoFile(0, 100), redoFile(1, 100), bytesOf(snapshotRedo, 0, 50, 50), bytesOf(snapshotRedo, 0, 0, 10),
				endBytes(snapshotRedo), startBytes(snapshotDone, 0)),
			want: []string{"write ibdata1(40) 0+15", "write ibdata1(40) 15+25", "write a/c.ibd(30) 10+5", "write a/b.ibd(20) 0+0", "write a/b.ibd(20) 5+5",
				"write #innodb_redo/#ib_redo0(100) 50+50", "write #innodb_redo/#ib_redo0(100) 0+10", "write #innodb_redo/#ib_redo1(100) 0+0"},
		},
		"a file that grew has at the end the size that the donor reports": {
			steps: steps(startBytes(snapshotFiles, 1), table(snapshotFiles, 0, "./t.ibd", 7<<14), bytesOf(snapshotFiles, 0, 0, 10), endBytes(snapshotFiles),
				startBytes(snapshotPages, 1), step{descriptor: dataBytes(dataDesc{state: snapshotPages, length: 4, size: 9 << 14}), data: "head"},
				bytesOf(snapshotPages, 0, 8<<14, 6), endBytes(snapshotPages), startBytes(snapshotRedo, 0), endBytes(snapshotRedo), startBytes(snapshotDone, 0)),
			want: []string{"write t.ibd(114688) 0+10", "write t.ibd(147456) 0+4", "write t.ibd(147456) 131072+6", "write t.ibd(147456) 147456+0"},
		},
		"a file of more than an extent ends with a whole extent": {
			steps: steps(startBytes(snapshotFiles, 1), table(snapshotFiles, 0, "./t.ibd", 1<<20+16384), bytesOf(snapshotFiles, 0, 0, 1), endBytes(snapshotFiles),
				startBytes(snapshotPages, 0), endBytes(snapshotPages), startBytes(snapshotRedo, 0), endBytes(snapshotRedo), startBytes(snapshotDone, 0)),
			want: []string{"write t.ibd(1064960) 0+1", "write t.ibd(1064960) 2097152+0"},
		},
		"a system tablespace of two files grows at the end of the second": {
			steps: steps(startBytes(snapshotFiles, 2), fileBytes(fileDesc{state: snapshotFiles, index: 0, name: "ibdata1", size: 100}, 0),
				fileBytes(fileDesc{state: snapshotFiles, index: 1, name: "ibdata2", size: 50}, 0), endBytes(snapshotFiles), startBytes(snapshotPages, 1),
				step{descriptor: dataBytes(dataDesc{state: snapshotPages, length: 1, size: 170}), data: "x"}, endBytes(snapshotPages),
				startBytes(snapshotRedo, 0), endBytes(snapshotRedo), startBytes(snapshotDone, 0)),
			want: []string{"write ibdata1(100) 0+0", "write ibdata2(50) 0+0", "write ibdata1(100) 0+1", "write ibdata2(70) 70+0"},
		},
		"a file dropped while it is copied": {
			steps: steps(startBytes(snapshotFiles, 2), table(snapshotFiles, 0, "./a.ibd", 100), table(snapshotFiles, 1, "./b.ibd", 100), bytesOf(snapshotFiles, 0, 0, 50),
				changed(snapshotFiles, 0, "./a.ibd", deleted), bytesOf(snapshotFiles, 0, 50, 50), bytesOf(snapshotFiles, 1, 0, 100), endBytes(snapshotFiles),
				changed(snapshotPages, 0, "./a.ibd", deleted), startBytes(snapshotPages, 0)),
			want: []string{"write a.ibd(100) 0+50", "write b.ibd(100) 0+100", "remove a.ibd"},
		},
		"a file dropped before its data came never reaches the Sink": {
			steps: steps(startBytes(snapshotFiles, 1), table(snapshotFiles, 0, "./a.ibd", 100), changed(snapshotFiles, 0, "./a.ibd", deleted), endBytes(snapshotFiles),
				changed(snapshotPages, 0, "./a.ibd", deleted), startBytes(snapshotPages, 0)),
		},
		"two tables that swapped their names": {
			steps: steps(startBytes(snapshotFiles, 2), table(snapshotFiles, 0, "./x.ibd", 10), table(snapshotFiles, 1, "./y.ibd", 10), endBytes(snapshotFiles),
				changed(snapshotPages, 0, "./y.ibd", renamed), changed(snapshotPages, 1, "./x.ibd", renamed), startBytes(snapshotPages, 0)),
			want: []string{"write x.ibd(10) 0+0", "write y.ibd(10) 0+0", "rename x.ibd #renamed-0", "rename y.ibd x.ibd", "rename #renamed-0 y.ibd"},
		},
		"a rebuilt table: the new one gets the name of the old one": {
			steps: steps(startBytes(snapshotFiles, 1), table(snapshotFiles, 0, "./d/t.ibd", 10), endBytes(snapshotFiles),
				changed(snapshotPages, 0, "./d/t.ibd", deleted), changed(snapshotPages, 1, "./d/t.ibd", same), startBytes(snapshotPages, 0)),
			want: []string{"write d/t.ibd(10) 0+0", "remove d/t.ibd", "write d/t.ibd(114688) 0+16384"},
		},
		"a table created and dropped within a stage is only counted": {
			steps: steps(startBytes(snapshotFiles, 0), endBytes(snapshotFiles), changed(snapshotPages, 0, "./gone.ibd", deleted),
				changed(snapshotPages, 1, "./new.ibd", renamed), startBytes(snapshotPages, 1), bytesOf(snapshotPages, 1, 0, 3)),
			want: []string{"write new.ibd(114688) 0+16384", "write new.ibd(114688) 0+3"},
		},
		"a truncated undo tablespace has its name again, and is 16 MiB long": {
			steps: steps(startBytes(snapshotFiles, 1), changed(snapshotFiles, 0, "undo_001", func(d *fileDesc) { d.space = firstUndoSpace + 1 }), endBytes(snapshotFiles),
				changed(snapshotPages, 0, "undo_001", deleted), changed(snapshotPages, 1, "undo_001", func(d *fileDesc) { d.space = firstUndoSpace + 2 }),
				startBytes(snapshotPages, 0)),
			want: []string{"write undo_001(114688) 0+0", "remove undo_001", "write undo_001(16777216) 0+16384"},
		},
		"an old donor has its redo log next to its data": {
			steps: steps(startBytes(snapshotFiles, 0), endBytes(snapshotFiles), startBytes(snapshotPages, 0), endBytes(snapshotPages), startBytes(snapshotRedo, 1),
				redoFile(0, 10), endBytes(snapshotRedo)),
			want: []string{"write ib_logfile0(10) 0+0"},
		},
	}
	for reason, test := range tests {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			sink, version := &recorder{}, release
			if strings.HasPrefix(reason, "an old donor") {
				version = 80026
			}
			if err := play(newRecipient(sink, version), test.steps); err != nil {
				t.Fatal(err)
			}
			if difference := cmp.Diff(test.want, sink.calls); difference != "" {
				t.Error(difference)
			}
		})
	}
}

// TestRecipientRefuses has donors that send invalid messages, or data that cannot be copied.
func TestRecipientRefuses(t *testing.T) {
	t.Parallel()
	one := steps(startBytes(snapshotFiles, 1), table(snapshotFiles, 0, "./a.ibd", 100))
	after := func(more ...any) []step { return append(slices.Clone(one), steps(more...)...) }
	tests := map[string]struct {
		steps []step
		want  string
	}{
		"a stage skipped":                            {steps(startBytes(snapshotPages, 0)), "PAGE COPY after INIT"},
		"a stage begun before the last ended":        {after(startBytes(snapshotPages, 0)), "PAGE COPY after FILE COPY"},
		"a stage ended twice":                        {after(endBytes(snapshotFiles), endBytes(snapshotFiles)), "the end of FILE COPY during FILE COPY"},
		"an unknown stage":                           {after(startBytes(9, 0)), "state 9 after"},
		"files missing":                              {append(steps(startBytes(snapshotFiles, 2)), after(endBytes(snapshotFiles))[1:]...), "1 of 2 files"},
		"an unknown descriptor":                      {steps(append(header(16, 7), 0, 0, 0, 0)), "a descriptor of type 7"},
		"a descriptor of another version":            {steps([]byte{0, 0, 0, 101, 0, 0, 0, 12, 0, 0, 0, 2}), "descriptor version 101"},
		"a descriptor cut short":                     {steps(startBytes(snapshotFiles, 0)[:20]), "says it has 46 bytes and has 20"},
		"an unknown flag":                            {after(fileBytes(fileDesc{state: snapshotFiles, index: 1, name: "b"}, 1<<9)), "flags 0x200 of a file"},
		"a file out of order":                        {after(table(snapshotFiles, 5, "./b.ibd", 1)), `file 5 ("./b.ibd") after 1`},
		"a name that leads out of the directory":     {steps(startBytes(snapshotFiles, 1), table(snapshotFiles, 0, "./../../etc/passwd", 1)), "leads out of the data directory"},
		"a name that is absolute":                    {steps(startBytes(snapshotFiles, 1), table(snapshotFiles, 0, "/elsewhere/t.ibd", 1)), "outside of the data directory"},
		"a name that is reserved":                    {steps(startBytes(snapshotFiles, 1), table(snapshotFiles, 0, "#clone/#status_fix", 1)), "needs for the copy itself"},
		"one name twice":                             {after(table(snapshotFiles, 1, "./a.ibd", 1)), "two files of this name"},
		"a new name that leads out of the directory": {after(endBytes(snapshotFiles), changed(snapshotPages, 0, "../b.ibd", renamed), startBytes(snapshotPages, 0)), "leads out"},
		"a new name that another file has": {append(after(table(snapshotFiles, 1, "./b.ibd", 1)), steps(endBytes(snapshotFiles), changed(snapshotPages, 0, "./b.ibd", renamed),
			startBytes(snapshotPages, 0))...), "name of another file"},
		"a new file with the name of another": {after(endBytes(snapshotFiles), changed(snapshotPages, 1, "./a.ibd", same), startBytes(snapshotPages, 0)), "name of another file"},
		"a tablespace that becomes another": {after(endBytes(snapshotFiles), changed(snapshotPages, 0, "./a.ibd", func(d *fileDesc) { d.space = 7 }),
			startBytes(snapshotPages, 0)), "another tablespace"},
		"a change to a removed file": {after(endBytes(snapshotFiles), changed(snapshotPages, 0, "./a.ibd", deleted), startBytes(snapshotPages, 0), endBytes(snapshotPages),
			changed(snapshotRedo, 0, "./b.ibd", renamed), startBytes(snapshotRedo, 0)), "which is gone"},
		"a file that ends early and stays": {after(changed(snapshotFiles, 0, "./a.ibd", deleted), endBytes(snapshotFiles), startBytes(snapshotPages, 0), endBytes(snapshotPages),
			startBytes(snapshotRedo, 0), endBytes(snapshotRedo), startBytes(snapshotDone, 0)), "ends early and is not removed"},
		"an encrypted tablespace": {steps(startBytes(snapshotFiles, 1), changed(snapshotFiles, 0, "./a.ibd", func(d *fileDesc) { d.encrypted = true })), "is encrypted"},
		"an encrypted tablespace by its own flags": {steps(startBytes(snapshotFiles, 1), changed(snapshotFiles, 0, "./a.ibd", func(d *fileDesc) { d.spaceFlags |= 1 << 13 })),
			"is encrypted"},
		"a tablespace encrypted meanwhile": {after(endBytes(snapshotFiles), changed(snapshotPages, 0, "./a.ibd", func(d *fileDesc) { d.encrypted = true }),
			startBytes(snapshotPages, 0)), "is encrypted"},
		"data beyond the end":          {after(bytesOf(snapshotFiles, 0, 90, 11)), "11 bytes at 90"},
		"data going back":              {after(bytesOf(snapshotFiles, 0, 50, 10), bytesOf(snapshotFiles, 0, 0, 10)), "out of order"},
		"data of an unknown file":      {after(bytesOf(snapshotFiles, 1, 0, 1)), "file 1 of 1"},
		"data of another stage":        {after(bytesOf(snapshotPages, 0, 0, 1)), "data of PAGE COPY during FILE COPY"},
		"empty data":                   {after(bytesOf(snapshotFiles, 0, 0, 0)), "0 bytes at 0"},
		"data at an offset that wraps": {after(step{descriptor: dataBytes(dataDesc{state: snapshotFiles, offset: -1, length: 5}), data: "12345"}), "a file of 18446744073709551615 bytes"},
		"less data than announced":     {after(step{descriptor: dataBytes(dataDesc{state: snapshotFiles, length: 5}), data: "123"}), "ends 5 bytes early"},
		"more data than announced":     {after(step{descriptor: dataBytes(dataDesc{state: snapshotFiles, length: 2}), data: "123"}), "more data"},
	}
	for reason, test := range tests {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			err := play(newRecipient(&recorder{}, release), test.steps)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q", err, test.want)
			}
		})
	}
}

func TestSinkFails(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	err := play(newRecipient(&recorder{fail: full}, release), steps(startBytes(snapshotFiles, 1), table(snapshotFiles, 0, "./a.ibd", 9), bytesOf(snapshotFiles, 0, 0, 9)))
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "a.ibd") {
		t.Errorf("error is %v", err)
	}
}

// TestAck checks that the end of a stage is acknowledged with its own descriptor.
func TestAck(t *testing.T) {
	t.Parallel()
	r := newRecipient(&recorder{}, release)
	if err := play(r, steps(startBytes(snapshotFiles, 0))); err != nil {
		t.Fatal(err)
	}
	what, err := r.describe(stateDesc{state: snapshotFiles, task: 0, chunks: 3, files: 4, estimate: 5, disk: 6}.encode())
	if err != nil || what.ended != snapshotFiles {
		t.Fatal(what, err)
	}
	got, err := parseState(what.ack)
	if want := (stateDesc{state: snapshotFiles, chunks: 3, files: 4, estimate: 5, disk: 6, ack: true}); err != nil || got != want {
		t.Errorf("acknowledged %+v, %v", got, err)
	}
}

// FuzzRecipient has donors that send anything. The recipient may fail, but it must not panic or write outside of the limits.
func FuzzRecipient(f *testing.F) {
	for _, list := range [][]step{
		steps(taskBytes(), startBytes(snapshotFiles, 1), table(snapshotFiles, 0, "./a/b.ibd", 20), bytesOf(snapshotFiles, 0, 0, 15), endBytes(snapshotFiles)),
		steps(startBytes(snapshotFiles, 0), endBytes(snapshotFiles), changed(snapshotPages, 0, "./n.ibd", same), startBytes(snapshotPages, 0), endBytes(snapshotPages)),
	} {
		var script []byte
		for _, one := range list {
			script = append(script, byte(len(one.descriptor)))
			script = append(append(script, one.descriptor...), byte(len(one.data)))
			script = append(script, one.data...)
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		cut := func() []byte {
			if len(script) == 0 {
				return nil
			}
			length := min(int(script[0]), len(script)-1)
			piece := script[1 : 1+length]
			script = script[1+length:]
			return piece
		}
		sink := &checking{t: t}
		r := newRecipient(sink, release)
		for len(script) > 0 {
			descriptor := cut()
			if play(r, []step{{descriptor: descriptor, data: string(cut())}}) != nil {
				return
			}
		}
	})
}

// checking is a Sink that checks what no donor may achieve.
type checking struct{ t *testing.T }

func (c *checking) name(name string) {
	if clean, err := cleanName(name); err != nil || clean != name {
		c.t.Errorf("the Sink gets the name %q", name)
	}
}

func (c *checking) Write(file File, offset int64, data []byte) error {
	c.name(file.Name)
	if offset < 0 || file.Size < 0 || offset+int64(len(data)) > maxFileSize {
		c.t.Errorf("the Sink gets %d bytes at %d of %d", len(data), offset, file.Size)
	}
	return nil
}

func (c *checking) Rename(from, to string) error {
	c.name(from)
	c.name(to)
	return nil
}

func (c *checking) Remove(name string) error {
	c.name(name)
	return nil
}
