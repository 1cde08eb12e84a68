package mysqld

import (
	"context"
	"fmt"
)

// Measured is what mysqld says of its own size. Nothing is decided by it.
type Measured struct {
	// Memory is how many bytes mysqld has allocated, as far as its instruments count; 0 where performance_schema is off. The buffer pool
	// counts whole from the start, and some allocations have no instrument.
	Memory int64
	// OpenFiles is how many files mysqld may have open: open_files_limit as it came out.
	OpenFiles int64
}

// Measure reads a thousand rows of counters that are in memory anyway (manual, "Memory Summary Tables"): what sys.memory_global_total adds
// up, with nothing but the right to read performance_schema.
func (s *Server) Measure(ctx context.Context) (Measured, error) {
	var found Measured
	row := s.db.QueryRowContext(ctx, `SELECT COALESCE((SELECT CAST(SUM(CURRENT_NUMBER_OF_BYTES_USED) AS SIGNED) FROM performance_schema.memory_summary_global_by_event_name), 0),
		@@GLOBAL.open_files_limit`)
	if err := row.Scan(&found.Memory, &found.OpenFiles); err != nil {
		return Measured{}, fmt.Errorf("read mysqld's memory and its limit of open files: %w", err)
	}
	return found, nil
}
