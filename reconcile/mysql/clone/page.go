package clone

import (
	"encoding/binary"
	"hash/crc32"
)

// A tablespace that DDL creates during the copy is not read from its beginning: the changes to its pages come with StagePages, or are in
// the redo log. But recovery accepts a file as a tablespace only if its first page says so. So the recipient writes that page, as mysqld
// does when it creates a tablespace.

// Offsets in a page (MySQL Internals, "InnoDB Page Structure"; storage/innobase/include/fil0types.h).
const (
	pageChecksum      = 0
	pageNumber        = 4
	pageServerVersion = 8  // of the first page only
	pageSpaceVersion  = 12 // of the first page only
	pageLSN           = 16
	pageType          = 24
	pageFlushLSN      = 26
	pageSpace         = 34
	pageData          = 38
	pageTrailer       = 8 // from the end
	spaceID           = pageData + 0
	spaceFlags        = pageData + 16
)

// currentSpaceVersion is written into the first page of every tablespace since 8.0.
const currentSpaceVersion = 1

const (
	// newFilePages is the length of a new tablespace of a table, in pages. newUndoSize is the size of a new undo tablespace, in bytes.
	newFilePages = 7
	newUndoSize  = 16 << 20
	// Identifiers of undo tablespaces: 127 tablespaces with 400,000 generations each, below the identifier of the redo log.
	redoSpace      = 0xfffffff0
	firstUndoSpace = redoSpace - 127*400_000
)

// pageSizes are the page sizes of a tablespace: logical in memory, physical in the file (smaller with ROW_FORMAT=COMPRESSED).
type pageSizes struct{ logical, physical int64 }

func pageSizesOf(flags uint32) (pageSizes, error) {
	const original = 16 << 10
	size := func(code uint32, otherwise int64) int64 {
		if code == 0 {
			return otherwise
		}
		return 512 << code
	}
	logical := size(flags>>6&0xf, original)
	sizes := pageSizes{logical: logical, physical: size(flags>>1&0xf, logical)}
	if sizes.logical < 4<<10 || sizes.logical > 64<<10 || sizes.physical < 1<<10 || sizes.physical > sizes.logical {
		return pageSizes{}, protocolError("tablespace flags %#x with pages of %d and %d bytes", flags, sizes.logical, sizes.physical)
	}
	return sizes, nil
}

// extent is the unit in which a tablespace grows: 64 pages, but 1 MiB if pages are smaller than 16 KiB.
func (p pageSizes) extent() int64 {
	return p.physical * max(64, (1<<20)/p.logical)
}

func isUndo(space uint32) bool { return space >= firstUndoSpace && space < redoSpace }

// firstPage returns the first page of a new tablespace.
func firstPage(desc fileDesc, release uint32) ([]byte, error) {
	sizes, err := pageSizesOf(desc.spaceFlags)
	if err != nil {
		return nil, err
	}
	page := make([]byte, sizes.physical)
	binary.BigEndian.PutUint32(page[pageServerVersion:], release)
	binary.BigEndian.PutUint32(page[pageSpaceVersion:], currentSpaceVersion)
	binary.BigEndian.PutUint32(page[pageSpace:], desc.space)
	binary.BigEndian.PutUint32(page[spaceID:], desc.space)
	binary.BigEndian.PutUint32(page[spaceFlags:], desc.spaceFlags)
	if sizes.physical < sizes.logical {
		binary.BigEndian.PutUint32(page[pageChecksum:], compressedChecksum(page))
		return page, nil
	}
	sum := checksum(page)
	binary.BigEndian.PutUint32(page[pageChecksum:], sum)
	binary.BigEndian.PutUint32(page[len(page)-pageTrailer:], sum)
	return page, nil
}

// checksum is innodb_checksum_algorithm=crc32 for a page. It covers everything except the checksums themselves and what is written after
// them.
func checksum(page []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Checksum(page[pageNumber:pageFlushLSN], table) ^ crc32.Checksum(page[pageData:len(page)-pageTrailer], table)
}

// compressedChecksum is the checksum of a page of ROW_FORMAT=COMPRESSED, which has no trailer.
func compressedChecksum(page []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Checksum(page[pageNumber:pageLSN], table) ^ crc32.Checksum(page[pageType:pageFlushLSN], table) ^
		crc32.Checksum(page[pageSpace:], table)
}

// newFileSize is the minimum size of a new tablespace.
func newFileSize(desc fileDesc) (int64, error) {
	sizes, err := pageSizesOf(desc.spaceFlags)
	if err != nil {
		return 0, err
	}
	if isUndo(desc.space) {
		return newUndoSize, nil
	}
	return newFilePages * sizes.physical, nil
}
