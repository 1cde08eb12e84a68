package mysqlbackupinstance

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/backup"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// size writes a number of bytes for people, as Kubernetes writes quantities: 1.2Gi.
func size(bytes int64) string {
	const kibi = 1024
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
	value, unit := float64(bytes), 0
	for math.Round(value*10)/10 >= kibi && unit < len(units)-1 {
		value /= kibi
		unit++
	}
	if unit == 0 {
		return strconv.FormatInt(bytes, 10)
	}
	digits := 1
	if value >= 100 { // 180Mi says as much as 180.3Mi
		digits = 0
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', digits, 64), ".0") + units[unit]
}

// duration writes a time span for people: 1m12s.
func duration(span time.Duration) string { return max(0, span).Round(time.Second).String() }

const hundred = 100

// measured is what a Pod says of its progress, as the status has it. Since the data grows and the end takes its time, 100 percent are
// reached by a complete backup only.
func measured(said backup.Progress) *v1.TransferProgress {
	progress := &v1.TransferProgress{Bytes: max(0, said.Bytes), TotalBytes: max(0, said.TotalBytes), BytesPerSecond: max(0, said.BytesPerSecond)}
	if progress.TotalBytes == 0 {
		progress.Summary = size(progress.Bytes)
	} else {
		share := float64(progress.Bytes) / float64(progress.TotalBytes) * hundred
		progress.Percent = int32(min(share, hundred-1))
		progress.Summary = fmt.Sprintf("%d%% of %s", progress.Percent, size(progress.TotalBytes))
	}
	if progress.BytesPerSecond > 0 {
		progress.Summary += ", " + size(progress.BytesPerSecond) + "/s"
	}
	return progress
}
