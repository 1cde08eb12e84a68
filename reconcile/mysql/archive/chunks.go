package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	compression      = "zstd"
	encryptionScheme = "age"
	// chunkSize is how many raw bytes a chunk has; the last one has fewer. It bounds the memory needed to compress on several cores.
	chunkSize = 2 << 20
	// workers is how many chunks are compressed, or decompressed, at a time: a backup must leave some CPU of the member's node to others.
	workers = 2
	// frameHead is the length of the header before each chunk's frame: a skippable frame (RFC 8878, section 3.1.2) whose four bytes are the
	// length of the frame that follows, as pzstd writes it. Decompressors skip it. It lets a reader find chunks without decompressing.
	frameHead      = 12
	frameHeadMagic = 0x184D2A50
	// frameLimit is longer than any frame of a chunk can be: data that cannot be compressed grows by a few bytes.
	frameLimit = chunkSize + chunkSize/128 + 1<<10
)

// chunk is a piece of the tar stream that is being processed.
type chunk struct {
	raw, packed []byte
	err         error
	done        chan struct{}
}

// pool processes chunks on several cores and keeps their order. The number of chunks is bounded: take waits for a free chunk.
type pool struct {
	stop  <-chan struct{} // ends every wait
	free  chan *chunk
	jobs  chan *chunk
	order chan *chunk
	group sync.WaitGroup
}

// errStopped means that a wait ended because the whole operation ended; the cause is in its context.
var errStopped = errors.New("stopped")

// newPool starts workers that call work for each chunk until finish is called.
func newPool(stop <-chan struct{}, work func(*chunk) error) *pool {
	const inFlight = 2*workers + 2
	p := &pool{stop: stop, free: make(chan *chunk, inFlight), jobs: make(chan *chunk, inFlight), order: make(chan *chunk, inFlight)}
	for range inFlight {
		p.free <- &chunk{}
	}
	for range workers {
		p.group.Go(func() {
			for one := range p.jobs {
				one.err = work(one)
				close(one.done)
			}
		})
	}
	return p
}

// take returns a chunk to fill.
func (p *pool) take() (*chunk, error) {
	select {
	case one := <-p.free:
		one.err, one.done = nil, make(chan struct{})
		return one, nil
	case <-p.stop:
		return nil, errStopped
	}
}

// submit passes a filled chunk to the workers. It never blocks: the queues have room for all chunks.
func (p *pool) submit(one *chunk) {
	p.jobs <- one
	p.order <- one
}

// finish ends the work: the caller submits no more chunks.
func (p *pool) finish() {
	close(p.jobs)
	close(p.order)
}

// wait returns when all workers have ended. Call finish first.
func (p *pool) wait() { p.group.Wait() }

// next returns the processed chunks in the order in which they were submitted, and io.EOF after the last one. Give each back when it is no
// longer needed.
func (p *pool) next() (*chunk, error) {
	select {
	case one, more := <-p.order:
		if !more {
			return nil, io.EOF
		}
		<-one.done
		return one, one.err
	case <-p.stop:
		return nil, errStopped
	}
}

// giveBack makes a chunk available again.
func (p *pool) giveBack(one *chunk) { p.free <- one }

// newEncoder makes the encoder that all workers share.
func newEncoder() (*zstd.Encoder, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(workers),
		zstd.WithWindowSize(chunkSize), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true), zstd.WithSingleSegment(true))
	if err != nil {
		return nil, fmt.Errorf("make zstd encoder: %w", err)
	}
	return encoder, nil
}

// pack compresses a chunk.
func pack(encoder *zstd.Encoder, one *chunk) error {
	if one.packed == nil {
		one.packed = make([]byte, 0, frameHead+frameLimit)
	}
	one.packed = append(one.packed[:0], make([]byte, frameHead)...)
	one.packed = encoder.EncodeAll(one.raw, one.packed)
	binary.LittleEndian.PutUint32(one.packed, frameHeadMagic)
	binary.LittleEndian.PutUint32(one.packed[4:], 4)
	binary.LittleEndian.PutUint32(one.packed[8:], uint32(len(one.packed)-frameHead)) //nolint:gosec // at most frameLimit
	return nil
}

// newDecoder makes the decoder that all workers share.
func newDecoder() (*zstd.Decoder, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(workers), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(chunkSize), zstd.WithDecodeAllCapLimit(true), zstd.IgnoreChecksum(false))
	if err != nil {
		return nil, fmt.Errorf("make zstd decoder: %w", err)
	}
	return decoder, nil
}

// unpack decompresses a chunk. The frame must have its length and a checksum.
func unpack(decoder *zstd.Decoder, one *chunk) error {
	var head zstd.Header
	if err := head.Decode(one.packed); err != nil {
		return fmt.Errorf("read frame: %w", err)
	}
	if head.Skippable || !head.HasCheckSum || !head.HasFCS || head.FrameContentSize < 1 || head.FrameContentSize > chunkSize {
		return errors.New("read frame: its length is missing or too large, or it has no checksum")
	}
	if one.raw == nil {
		one.raw = make([]byte, 0, chunkSize)
	}
	raw, err := decoder.DecodeAll(one.packed, one.raw[:0])
	if err != nil {
		return fmt.Errorf("decompress: %w", err)
	}
	if uint64(len(raw)) != head.FrameContentSize {
		return fmt.Errorf("decompress: %d bytes instead of %d", len(raw), head.FrameContentSize)
	}
	one.raw = raw
	return nil
}

// readFrame reads the next chunk's frame. It returns io.EOF if there is none.
func readFrame(from io.Reader, one *chunk) error {
	var head [frameHead]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return err
	}
	length := binary.LittleEndian.Uint32(head[8:])
	if binary.LittleEndian.Uint32(head[:]) != frameHeadMagic || binary.LittleEndian.Uint32(head[4:]) != 4 || length > frameLimit {
		return errors.New("the data is not a chunk")
	}
	if one.packed == nil {
		one.packed = make([]byte, 0, frameHead+frameLimit)
	}
	one.packed = one.packed[:length]
	if _, err := io.ReadFull(from, one.packed); err != nil {
		return noEOF(err)
	}
	return nil
}

// noEOF turns io.EOF, for an end that comes too early, into an error that is not taken for the end.
func noEOF(err error) error {
	if isEnd(err) {
		return io.ErrUnexpectedEOF
	}
	return err
}
