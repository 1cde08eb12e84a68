package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
)

// streamError means that no recorder wrote the stream.
type streamError struct{ reason string }

func (e *streamError) Error() string { return e.reason }

// entry is the parsed name of a tar entry.
type entry struct {
	verb   verb
	number int64
	offset int64
	name   string
}

type verb string

const (
	verbData   verb = "data"
	verbChange verb = "change"
	verbCreate verb = "create"
	verbRename verb = "rename"
	verbRemove verb = "remove"
)

// parseEntry reads an entry's name: data/NAME, changes/NUMBER@OFFSET/NAME, or changes/NUMBER-VERB/NAME.
func parseEntry(path string) (entry, error) {
	if name, ok := strings.CutPrefix(path, dataFolder); ok {
		return entry{verb: verbData, name: name}, checkName(name)
	}
	rest, ok := strings.CutPrefix(path, changesFolder)
	if !ok {
		return entry{}, fmt.Errorf("entry %q is neither data nor a change", path)
	}
	head, name, _ := strings.Cut(rest, "/")
	if err := checkName(name); err != nil {
		return entry{}, err
	}
	parsed, err := parseChange(head)
	if err != nil {
		return entry{}, fmt.Errorf("entry %q is not a valid change: %w", path, err)
	}
	parsed.name = name
	return parsed, nil
}

// parseChange reads NUMBER@OFFSET or NUMBER-VERB.
func parseChange(head string) (entry, error) {
	end := strings.IndexAny(head, "@-")
	if end < 0 {
		return entry{}, errors.New("it has neither an offset nor a verb")
	}
	number, err := strconv.ParseInt(head[:end], 10, 64)
	if err != nil || number < 1 {
		return entry{}, fmt.Errorf("invalid number %q", head[:end])
	}
	if head[end] == '@' {
		offset, err := strconv.ParseInt(head[end+1:], 10, 64)
		if err != nil || offset < 0 {
			return entry{}, fmt.Errorf("invalid offset %q", head[end+1:])
		}
		return entry{verb: verbChange, number: number, offset: offset}, nil
	}
	word := verb(head[end+1:])
	if word != verbCreate && word != verbRename && word != verbRemove {
		return entry{}, fmt.Errorf("unknown verb %q", word)
	}
	return entry{verb: word, number: number}, nil
}

// replayer turns a tar stream into calls to a clone.Sink.
type replayer struct {
	sink clone.Sink
	tar  *tar.Reader
	// sizes has every name that ever occurred, with the file's announced size, or absentFile after the file was removed. It has at most
	// names names.
	sizes  map[fileKey]int64
	names  int
	number int64
	buffer []byte
}

const (
	absentFile = -1
	// namesLimit is more files than a data directory has. So many names fit into the memory of a Pod.
	namesLimit = 2_000_000
)

// replay reads a tar stream to its end.
func replay(from io.Reader, sink clone.Sink) error {
	p := &replayer{sink: sink, tar: tar.NewReader(from), sizes: map[fileKey]int64{}, names: namesLimit, buffer: make([]byte, 256<<10)}
	return p.playAll()
}

// playAll replays all entries.
func (p *replayer) playAll() error {
	for {
		header, err := p.tar.Next()
		if isEnd(err) {
			return nil
		}
		if err != nil {
			return asStreamError(err)
		}
		if err := p.play(header); err != nil {
			return err
		}
	}
}

// play replays one entry.
func (p *replayer) play(header *tar.Header) error {
	if header.Typeflag != tar.TypeReg || sparse(header) {
		return &streamError{reason: fmt.Sprintf("entry %q is not a regular file", header.Name)}
	}
	one, err := parseEntry(header.Name)
	if err != nil {
		return &streamError{reason: err.Error()}
	}
	if err := p.checkOrder(one, header); err != nil {
		return err
	}
	size := p.sizes[keyOf(one.name)]
	switch one.verb {
	case verbData, verbCreate:
		p.sizes[keyOf(one.name)] = header.Size
		return p.write(clone.File{Name: one.name, Size: header.Size}, 0, header.Size)
	case verbChange:
		return p.write(clone.File{Name: one.name, Size: size}, one.offset, header.Size)
	case verbRename:
		return p.rename(one.name, header)
	case verbRemove:
		p.sizes[keyOf(one.name)] = absentFile
		return p.sink.Remove(one.name)
	}
	return nil
}

// sparse reports whether an entry claims more bytes than the stream has for it: a small stream could fill any disk.
func sparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// checkOrder checks that an entry can follow those before it: changes are numbered without a gap, and a changed file exists.
func (p *replayer) checkOrder(one entry, header *tar.Header) error {
	if one.verb != verbData {
		p.number++
		if one.number != p.number {
			return &streamError{reason: fmt.Sprintf("entry %q is out of order: change %d must come next", header.Name, p.number)}
		}
	}
	size, used := p.sizes[keyOf(one.name)]
	fits := false
	switch one.verb {
	case verbData:
		fits = !used
		if err := p.room(one.name); err != nil {
			return err
		}
	case verbCreate:
		fits = used && size == absentFile
	case verbChange, verbRename, verbRemove:
		fits = used && size != absentFile
	}
	if !fits {
		return &streamError{reason: fmt.Sprintf("entry %q does not fit the entries before it", header.Name)}
	}
	return nil
}

// room returns an error if there is no room for another name.
func (p *replayer) room(name string) error {
	if _, used := p.sizes[keyOf(name)]; !used && len(p.sizes) >= p.names {
		return &streamError{reason: fmt.Sprintf("it has more than %d files", p.names)}
	}
	return nil
}

// write passes an entry's content to the sink.
func (p *replayer) write(file clone.File, offset, size int64) error {
	if size == 0 {
		return p.sink.Write(file, offset, nil)
	}
	for size > 0 {
		piece := p.buffer[:min(size, int64(len(p.buffer)))]
		if _, err := io.ReadFull(p.tar, piece); err != nil {
			return asStreamError(err)
		}
		if err := p.sink.Write(file, offset, piece); err != nil {
			return err
		}
		offset, size = offset+int64(len(piece)), size-int64(len(piece))
	}
	return nil
}

// rename renames a file. The entry's content is the new name.
func (p *replayer) rename(from string, header *tar.Header) error {
	if header.Size > nameLimit {
		return &streamError{reason: fmt.Sprintf("entry %q: the new name is too long", header.Name)}
	}
	content, err := io.ReadAll(p.tar)
	if err != nil {
		return asStreamError(err)
	}
	to := string(content)
	if err := checkName(to); err != nil || to == from {
		return &streamError{reason: fmt.Sprintf("entry %q: the new name %q is not a plain path, or the old one", header.Name, to)}
	}
	if err := p.room(to); err != nil {
		return err
	}
	p.sizes[keyOf(to)] = p.sizes[keyOf(from)]
	p.sizes[keyOf(from)] = absentFile
	return p.sink.Rename(from, to)
}

// asStreamError marks errors of the tar stream itself: an end that comes too early, or an invalid header.
func asStreamError(err error) error {
	if isShort(err) || errors.Is(err, tar.ErrHeader) {
		return &streamError{reason: fmt.Sprintf("read tar stream: %v", err)}
	}
	return err
}
