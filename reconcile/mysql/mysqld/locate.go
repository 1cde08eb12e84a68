package mysqld

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// Extent is a part of a file of the binary log: the bytes from From up to and without To.
type Extent struct {
	File     string
	From, To int64
}

// Locate returns where transactions are in the binary log, in the order of the log. The first extent of each file is its beginning, without
// which no program can read the transactions. It returns an error if it does not find all of them.
func (s *Server) Locate(ctx context.Context, wanted replication.GTIDSet) ([]Extent, error) {
	files, err := s.BinaryLogs(ctx)
	if err != nil {
		return nil, err
	}
	var all []Extent
	for _, file := range slices.Backward(files) {
		previous, err := s.previousGTIDs(ctx, file.Name)
		if err != nil {
			return nil, err
		}
		if previous.Contains(wanted) {
			continue
		}
		extents, found, err := s.locateIn(ctx, file.Name, wanted)
		if err != nil {
			return nil, err
		}
		all = slices.Concat(extents, all)
		if wanted = wanted.Subtract(found); wanted.Empty() {
			return all, nil
		}
	}
	return nil, fmt.Errorf("the binary log does not have the transactions %s", wanted)
}

// locateIn returns where transactions are in one file, and which ones it found.
func (s *Server) locateIn(ctx context.Context, file string, wanted replication.GTIDSet) (extents []Extent, found replication.GTIDSet, err error) {
	header, isOpen := Extent{File: file}, false
	err = s.eachEvent(ctx, file, func(event logEvent) {
		if isBetween(event.kind) && (header.To == 0 || header.To == event.from) {
			header.To = event.next
		}
		if startsGroup(event) {
			gtid := setOf(gtidOf(event))
			if isOpen = !gtid.Empty() && wanted.Contains(gtid); isOpen {
				found = found.Union(gtid)
				extents = append(extents, Extent{File: file, From: event.from})
			}
		}
		if isOpen = isOpen && !isBetween(event.kind); isOpen {
			extents[len(extents)-1].To = event.next
		}
	})
	if len(extents) > 0 {
		extents = slices.Insert(extents, 0, header)
	}
	return extents, found, err
}

// eachEvent visits the events of a file of the binary log.
func (s *Server) eachEvent(ctx context.Context, file string, visit func(logEvent)) error {
	next, most := int64(logHeader), mostEvents
	for {
		events, err := s.binlogEvents(ctx, file, next, most)
		switch {
		case errors.Is(err, errTooMuch) && most > leastEvents:
			most = max(leastEvents, most/16)
			continue
		case err != nil:
			return err
		}
		began := next
		for _, event := range events {
			if event.from == next && event.next == next {
				continue // a part of a compressed transaction, whose own event came before (manual, "Monitoring Transaction Compression")
			}
			if event.from < next || event.next <= event.from {
				return fmt.Errorf("read %s: mysqld says that an event at position %d ends at %d", file, event.from, event.next)
			}
			visit(event)
			next = event.next
		}
		if len(events) < most || next == began {
			return nil
		}
		most = min(mostEvents, 2*most)
	}
}
