package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
)

// A backup is refused if any of its files is damaged anywhere in any way. A file truncated to nothing is noticed, too.
func TestEveryCorruptionIsNoticed(t *testing.T) {
	t.Parallel()
	identity := newIdentity(t)
	for name, story := range map[string]ReadOptions{"plain": {}, "encrypted": {Identities: []age.Identity{identity}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			store := volumeAt(t, dir)
			options := WriteOptions{PartSize: 1 << 20}
			if story.Identities != nil {
				options.Recipients = []age.Recipient{identity.Recipient()}
			}
			backedUp(t, store, options, 6<<20)
			random := seeded(7)
			harms := map[string]func(*testing.T, string, *rand.Rand){"flip": flip, "truncate": truncate, "extend": extend, "drop": drop}
			for _, file := range filesOf(t, dir) {
				if filepath.Base(file) == markerName {
					continue // it does not matter once there is a manifest
				}
				for word, harm := range harms {
					for range harmsPerFile {
						restore := remembered(t, file)
						harm(t, file, random)
						if err := readWhole(t, store, story); !noBackup(err) {
							t.Errorf("%s %s: %v", word, filepath.Base(file), err)
						}
						restore()
					}
				}
			}
			if err := readWhole(t, store, story); err != nil {
				t.Errorf("the undamaged backup: %v", err)
			}
		})
	}
}

// readWhole makes all the checks before the use of a backup.
func readWhole(t *testing.T, store *Store, options ReadOptions) error {
	t.Helper()
	manifest, _, err := Load(t.Context(), store)
	if err != nil {
		return err
	}
	return Verify(t.Context(), store, manifest, options)
}

// noBackup reports whether an error is about the backup, so that a retry cannot help.
func noBackup(err error) bool {
	var corrupt *CorruptError
	var incomplete *IncompleteError
	var foreign *ForeignError
	return errors.As(err, &corrupt) || errors.As(err, &incomplete) || errors.As(err, &foreign)
}

func remembered(t *testing.T, file string) func() {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return func() { rewrite(t, file, content) }
}

func rewrite(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func flip(t *testing.T, file string, random *rand.Rand) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[random.IntN(len(content))] ^= 1 << random.IntN(8)
	rewrite(t, file, content)
}

func truncate(t *testing.T, file string, random *rand.Rand) {
	t.Helper()
	info, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, random.Int64N(info.Size()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func extend(t *testing.T, file string, random *rand.Rand) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, file, append(content, pageOf(random, 1+random.IntN(100))...))
}

func drop(t *testing.T, file string, _ *rand.Rand) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

// A change of any bit of a manifest is noticed.
func TestEveryBitOfTheManifestMatters(t *testing.T) {
	t.Parallel()
	store := volumeAt(t, t.TempDir())
	_, manifest := backedUp(t, store, WriteOptions{}, 1<<20)
	sealed, err := sealManifest(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sealed {
		for bit := range 8 {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1 << bit
			if _, err := openManifest(changed, "here"); !noBackup(err) {
				t.Fatalf("byte %d, bit %d: %v", i, bit, err)
			}
		}
		if _, err := openManifest(sealed[:i], "here"); !noBackup(err) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

// Two parts of a backup are swapped.
func TestSwappedPartsAreNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := volumeAt(t, dir)
	_, manifest := backedUp(t, store, WriteOptions{PartSize: 1 << 20}, 12<<20)
	folder := nightlyIn(dir)
	for i := range manifest.Parts {
		for j := range i {
			first, second := filepath.Join(folder, manifest.Parts[i].Name), filepath.Join(folder, manifest.Parts[j].Name)
			swap(t, first, second)
			if err := readWhole(t, store, ReadOptions{}); !noBackup(err) {
				t.Errorf("parts %d and %d: %v", i, j, err)
			}
			// It is noticed also if the sizes in the manifest are swapped.
			swapped := manifest
			swapped.Parts = append([]Part{}, manifest.Parts...)
			swapped.Parts[i].Size, swapped.Parts[j].Size = manifest.Parts[j].Size, manifest.Parts[i].Size
			if err := Verify(t.Context(), store, swapped, ReadOptions{}); !noBackup(err) {
				t.Errorf("parts %d and %d, with their sizes: %v", i, j, err)
			}
			swap(t, first, second)
		}
	}
}

func swap(t *testing.T, first, second string) {
	t.Helper()
	for _, move := range [][2]string{{first, first + ".aside"}, {second, first}, {first + ".aside", second}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignManifests(t *testing.T) {
	t.Parallel()
	newer := manifestOf()
	newer.Format, newer.Product = Format+1, Product
	other := manifestOf()
	other.Format, other.Product = Format, "another-operator"
	for name, manifest := range map[string]Manifest{"a newer format": newer, "another product": other} {
		sealed, err := sealManifest(manifest)
		if err != nil {
			t.Fatal(err)
		}
		var foreign *ForeignError
		if _, err := openManifest(sealed, "here"); !errors.As(err, &foreign) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A stream of another program has names that lead out of the data directory, or entries that contradict each other.
func TestMaliciousStreamsAreRefused(t *testing.T) {
	t.Parallel()
	file := func(name, content string) *tar.Header {
		return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o600, PAXRecords: map[string]string{"comment": content}}
	}
	for name, headers := range map[string][]*tar.Header{
		"up":                       {file("data/../../etc/passwd", "")},
		"up in the middle":         {file("data/shop/../../x", "")},
		"absolute":                 {file("/etc/passwd", "")},
		"absolute below data":      {file("data//etc/passwd", "")},
		"a link":                   {{Typeflag: tar.TypeSymlink, Name: "data/a", Linkname: "/etc"}},
		"a folder":                 {{Typeflag: tar.TypeDir, Name: "data/a/"}},
		"line feed":                {file("data/a\nb", "")},
		"twice":                    {file("data/a", ""), file("data/a", "")},
		"elsewhere":                {file("other/a", "")},
		"change of nothing":        {file("changes/000000000001@0/a", "x")},
		"change out of order":      {file("data/a", ""), file("changes/000000000002@0/a", "x")},
		"negative offset":          {file("data/a", ""), file("changes/000000000001@-5/a", "x")},
		"unknown verb":             {file("data/a", ""), file("changes/000000000001-chmod/a", "x")},
		"rename to outside":        {file("data/a", ""), file("changes/000000000001-rename/a", "../b")},
		"rename of nothing":        {file("changes/000000000001-rename/a", "b")},
		"create of what is there":  {file("data/a", ""), file("changes/000000000001-create/a", "x")},
		"data of what was removed": {file("data/a", ""), file("changes/000000000001-remove/a", ""), file("data/a", "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var malformed *streamError
			if err := replay(tarOf(t, headers), tree{}); !errors.As(err, &malformed) {
				t.Errorf("replayed: %v", err)
			}
		})
	}
}

// A sparse entry could fill any disk from a few bytes.
func TestSparseEntriesAreRefused(t *testing.T) {
	t.Parallel()
	var stream bytes.Buffer
	writer := tar.NewWriter(&stream)
	// The writer refuses this record's name: the test renames it afterwards.
	header := &tar.Header{Typeflag: tar.TypeReg, Name: "data/a", Mode: 0o600, PAXRecords: map[string]string{"GNU_sparse.size": "999999999999", "GNU_sparse.numblocks": "1", "GNU_sparse.map": "0,0"}}
	if err := errors.Join(writer.WriteHeader(header), writer.Close()); err != nil {
		t.Fatal(err)
	}
	content := bytes.ReplaceAll(stream.Bytes(), []byte("GNU_sparse"), []byte("GNU.sparse"))
	var malformed *streamError
	if err := replay(bytes.NewReader(content), &failing{after: 1000, err: errors.New("too many bytes were written")}); !errors.As(err, &malformed) {
		t.Errorf("replayed: %v", err)
	}
}

func tarOf(t *testing.T, headers []*tar.Header) io.Reader {
	t.Helper()
	var stream bytes.Buffer
	writer := tar.NewWriter(&stream)
	for _, header := range headers {
		content := header.PAXRecords["comment"]
		header.PAXRecords = nil
		if err := writer.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(writer, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return &stream
}

func TestNamesThatLeadOutAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", ".", "..", "../a", "/a", "a/../b", "a//b", "a/", "a\\b", "a\nb", "a\x00b", strings.Repeat("x", nameLimit+1)} {
		t.Run(fmt.Sprintf("%.10q", name), func(t *testing.T) {
			t.Parallel()
			writer, err := Begin(t.Context(), volumeAt(t, t.TempDir()), WriteOptions{Identity: owner("nightly")})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = writer.Abort(t.Context()) }()
			if err := writer.Write(clone.File{Name: name}, 0, nil); err == nil {
				t.Error("written")
			}
			if err := writer.Write(clone.File{Name: "fine"}, 0, nil); err == nil {
				t.Error("the error is forgotten")
			}
		})
	}
}

func FuzzManifest(f *testing.F) {
	sealed, err := sealManifest(Manifest{Format: Format, Product: Product, Backup: owner("nightly"), Compression: compression, Data: Data{Raw: 1},
		Parts: []Part{{Name: "part-00001-01234567.tar.zst", Size: 1, Chunks: 1, Raw: 1, SHA256: strings.Repeat("0", 64)}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add([]byte(sealHead))
	f.Fuzz(func(t *testing.T, content []byte) {
		manifest, err := openManifest(content, "here")
		if err == nil && check(manifest) != nil {
			t.Error("an invalid manifest was accepted")
		}
		if err != nil && !noBackup(err) {
			t.Error(err)
		}
	})
}

func FuzzReplay(f *testing.F) {
	var stream bytes.Buffer
	recorder := newRecorder(&stream, testTime())
	sink := recorderSink{recorder}
	small := clone.File{Name: "shop/a.ibd", Size: 20}
	err := errors.Join(sink.Write(small, 0, []byte("rows")), sink.Write(clone.File{Name: "b"}, 0, nil), sink.Write(small, 2, []byte("changed")),
		sink.Rename("b", "c"), sink.Remove("c"), sink.Write(clone.File{Name: "c", Size: 1}, 0, []byte("x")), recorder.finish())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(stream.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		_ = replay(bytes.NewReader(content), safeNames{t}) // it may be refused
	})
}

// safeNames fails the test if it gets a name that leads out of the data directory.
type safeNames struct{ t *testing.T }

func (s safeNames) name(name string) {
	s.t.Helper()
	if !filepath.IsLocal(name) || strings.Contains(name, "//") {
		s.t.Errorf("name %q was accepted", name)
	}
}

func (s safeNames) Write(file clone.File, offset int64, _ []byte) error {
	s.name(file.Name)
	if offset < 0 || file.Size < 0 {
		s.t.Errorf("offset %d, size %d", offset, file.Size)
	}
	return nil
}

func (s safeNames) Rename(from, to string) error {
	s.name(from)
	s.name(to)
	return nil
}

func (s safeNames) Remove(name string) error {
	s.name(name)
	return nil
}

// recorderSink makes a recorder a clone.Sink.
type recorderSink struct{ *recorder }

func (r recorderSink) Write(file clone.File, offset int64, data []byte) error {
	return r.write(file, offset, data)
}
func (r recorderSink) Rename(from, to string) error { return r.rename(from, to) }
func (r recorderSink) Remove(name string) error     { return r.remove(name) }

// counting is a clone.Sink that counts the bytes it gets.
type counting struct {
	discardSink
	bytes int64
}

func (c *counting) Write(_ clone.File, _ int64, data []byte) error {
	c.bytes += int64(len(data))
	return nil
}

// A stream that is longer than the manifest says is not extracted beyond that length: free space was checked for the manifest's length.
func TestAStreamThatIsLongerThanTheManifestSays(t *testing.T) {
	t.Parallel()
	store := volumeAt(t, t.TempDir())
	_, manifest := backedUp(t, store, WriteOptions{PartSize: 1 << 30}, 24<<20)
	lying := manifest
	lying.Parts = slices.Clone(manifest.Parts)
	lying.Parts[0].Raw = manifest.Data.Raw / 3
	lying.Data.Raw = lying.Parts[0].Raw
	sink := &counting{}
	var corrupt *CorruptError
	if err := Extract(t.Context(), store, lying, ReadOptions{}, sink); !errors.As(err, &corrupt) {
		t.Errorf("extract: %v", err)
	}
	if sink.bytes == 0 || sink.bytes > lying.Data.Raw {
		t.Errorf("%d bytes were written, and the manifest says %d", sink.bytes, lying.Data.Raw)
	}
}

// A backup that no restore would accept must fail.
func TestABackupOfTooManyFiles(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(*recorder) error{
		"a file":   func(r *recorder) error { return r.write(clone.File{Name: "d"}, 0, nil) },
		"a rename": func(r *recorder) error { return r.rename("a", "d") },
	} {
		r := newRecorder(io.Discard, testTime())
		r.names = 3
		for _, file := range []string{"a", "b", "c"} {
			if err := r.write(clone.File{Name: file}, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := last(r); err == nil || !strings.Contains(err.Error(), "more than 3 files") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The memory for names is bounded, however many names a stream has.
func TestAStreamWithTooManyFiles(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]*tar.Header{
		"a file":   {Typeflag: tar.TypeReg, Name: "data/d"},
		"a rename": {Typeflag: tar.TypeReg, Name: "changes/000000000001-rename/a", Size: 1, PAXRecords: map[string]string{"comment": "d"}},
	} {
		headers := []*tar.Header{last}
		for _, file := range []string{"data/c", "data/b", "data/a"} {
			headers = append([]*tar.Header{{Typeflag: tar.TypeReg, Name: file}}, headers...)
		}
		stream := tarOf(t, headers)
		p := &replayer{sink: tree{}, tar: tar.NewReader(stream), sizes: map[fileKey]int64{}, names: 3, buffer: make([]byte, 1024)}
		var malformed *streamError
		if err := p.playAll(); !errors.As(err, &malformed) || !strings.Contains(err.Error(), "more than 3 files") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
