package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync/atomic"

	"filippo.io/age"
)

// packer is the io.Writer that divides the tar stream into chunks and submits them to be compressed.
type packer struct {
	pool    *pool
	current *chunk
	raw     int64
}

// Write implements io.Writer.
func (p *packer) Write(data []byte) (int, error) {
	written := 0
	for written < len(data) {
		if err := p.room(); err != nil {
			return written, err
		}
		n := min(chunkSize-len(p.current.raw), len(data)-written)
		p.current.raw = append(p.current.raw, data[written:written+n]...)
		written, p.raw = written+n, p.raw+int64(n)
	}
	return written, nil
}

// room makes sure that the current chunk is not full.
func (p *packer) room() error {
	if p.current != nil && len(p.current.raw) == chunkSize {
		p.pool.submit(p.current)
		p.current = nil
	}
	if p.current != nil {
		return nil
	}
	next, err := p.pool.take()
	if err != nil {
		return err
	}
	if next.raw == nil {
		next.raw = make([]byte, 0, chunkSize)
	}
	next.raw = next.raw[:0]
	p.current = next
	return nil
}

// finish submits the last chunk.
func (p *packer) finish() {
	if p.current != nil && len(p.current.raw) > 0 {
		p.pool.submit(p.current)
	}
	p.current = nil
	p.pool.finish()
}

// uploader makes parts from compressed chunks and stores the parts one after the other.
type uploader struct {
	store      *Store
	attempt    string
	recipients []age.Recipient
	partSize   int64
	// stored counts the stored bytes. Other goroutines read it.
	stored  *atomic.Int64
	parts   []Part
	current *openPart
}

// openPart is a part that is being stored.
type openPart struct {
	Part
	// in receives the data to store: it encrypts, hashes, and counts.
	in   io.WriteCloser
	pipe *io.PipeWriter
	hash hash.Hash
	// result receives the result of storing the part.
	result chan error
}

// run stores all chunks of a pool.
func (s *uploader) run(ctx context.Context, pool *pool) error {
	for {
		one, err := pool.next()
		if isEnd(err) {
			return s.end()
		}
		if err == nil {
			err = s.ship(ctx, one)
			pool.giveBack(one)
		}
		if err != nil {
			s.drop(err)
			return err
		}
	}
}

// ship adds a chunk to the current part.
func (s *uploader) ship(ctx context.Context, one *chunk) error {
	if s.current == nil {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	if _, err := s.current.in.Write(one.packed); err != nil {
		return s.cause(err)
	}
	s.current.Chunks++
	s.current.Raw += int64(len(one.raw))
	if s.current.Size < s.partSize {
		return nil
	}
	return s.end()
}

// begin opens the next part. Before each part but the first, it checks that the folder still belongs to this attempt.
func (s *uploader) begin(ctx context.Context) error {
	if len(s.parts) > 0 {
		if err := s.checkOwner(ctx); err != nil {
			return err
		}
	}
	part := &openPart{hash: sha256.New(), result: make(chan error, 1)}
	part.Name = fmt.Sprintf("%s%05d-%s.tar.zst", partPrefix, len(s.parts)+1, s.attempt)
	reader, writer := io.Pipe()
	part.pipe = writer
	counted := &countingWriter{part: part, stored: s.stored}
	part.in = counted
	if len(s.recipients) > 0 {
		part.Name += ".age"
	}
	go func() {
		err := s.store.put(ctx, part.Name, body{reader})
		// Nothing reads from the pipe any longer: a write in progress must fail, with the cause.
		_ = reader.CloseWithError(errors.Join(err, errPartEnded)) // never fails: io.PipeReader
		part.result <- err
	}()
	s.current = part
	if len(s.recipients) == 0 {
		return nil
	}
	encrypting, err := age.Encrypt(counted, s.recipients...)
	if err != nil {
		return s.cause(fmt.Errorf("encrypt %s: %w", part.Name, err))
	}
	part.in = encrypting
	return nil
}

// errPartEnded is the error of writes to a part after its storing has ended, with or without success.
var errPartEnded = errors.New("the part is no longer being stored")

// cause returns why a write to the current part failed: the error of storing the part, if that was the cause.
func (s *uploader) cause(err error) error {
	if !errors.Is(err, errPartEnded) {
		return err
	}
	part := s.current
	s.current = nil
	if stored := <-part.result; stored != nil {
		return stored
	}
	return err
}

// end completes the current part.
func (s *uploader) end() error {
	part := s.current
	if part == nil {
		return nil
	}
	if err := part.in.Close(); err != nil {
		return s.cause(err)
	}
	_ = part.pipe.Close() // never fails: io.PipeWriter
	s.current = nil
	if err := <-part.result; err != nil {
		return err
	}
	part.SHA256 = hex.EncodeToString(part.hash.Sum(nil))
	s.parts = append(s.parts, part.Part)
	return nil
}

// drop aborts the current part and waits until its storing has ended.
func (s *uploader) drop(cause error) {
	if s.current == nil {
		return
	}
	_ = s.current.pipe.CloseWithError(cause) // never fails: io.PipeWriter
	<-s.current.result                       //nolint:errcheck // the cause is known
	s.current = nil
}

// checkOwner returns an error if the folder's marker is not that of this attempt.
func (s *uploader) checkOwner(ctx context.Context) error {
	found, err := readMarker(ctx, s.store)
	if err != nil {
		return fmt.Errorf("read which backup the folder belongs to: %w", err)
	}
	if found.Attempt != s.attempt {
		return &OccupiedError{URL: s.store.url, Holder: found.Backup}
	}
	return nil
}

// countingWriter counts, hashes and forwards the stored bytes of a part.
type countingWriter struct {
	part   *openPart
	stored *atomic.Int64
}

// Write implements io.Writer.
func (w *countingWriter) Write(data []byte) (int, error) {
	n, err := w.part.pipe.Write(data)
	w.part.Size += int64(n)
	_, _ = w.part.hash.Write(data[:n]) // never fails: hash.Hash
	w.stored.Add(int64(n))
	return n, err
}

// Close implements io.Closer. It does not close the pipe; end and drop do.
func (w *countingWriter) Close() error { return nil }
