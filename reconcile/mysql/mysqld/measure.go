package mysqld

import (
	"context"
	"fmt"
)

// Measured is mysqld's own account of its size. No decision depends on it.
type Measured struct {
	// Memory is how many bytes mysqld has allocated, as far as its instruments count; 0 if performance_schema is off. The whole buffer pool
	// counts from the start, and some allocations have no instrument.
	Memory int64
	// OpenFiles is how many files mysqld may have open: the effective open_files_limit.
	OpenFiles int64
}

// Measure reads a thousand rows of counters that are in memory (manual, "Memory Summary Tables"). sys.memory_global_total adds up the same
// rows, but Measure needs only the privilege to read performance_schema.
func (s *Server) Measure(ctx context.Context) (Measured, error) {
	var found Measured
	row := s.db.QueryRowContext(ctx, `SELECT COALESCE((SELECT CAST(SUM(CURRENT_NUMBER_OF_BYTES_USED) AS SIGNED) FROM performance_schema.memory_summary_global_by_event_name), 0),
		@@GLOBAL.open_files_limit`)
	if err := row.Scan(&found.Memory, &found.OpenFiles); err != nil {
		return Measured{}, fmt.Errorf("read mysqld's memory and its limit of open files: %w", err)
	}
	return found, nil
}
