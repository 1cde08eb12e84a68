package transfer

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// whole is one hundred percent. A status never shows it for a transfer in progress: the data may grow, the end takes time, and only the
// outcome reports that the transfer is over.
const whole = 100

// StatusProgress returns the progress as a status has it. It replaces impossible values, such as negative numbers, by zero.
func StatusProgress(progress Progress) v1.TransferProgress {
	status := v1.TransferProgress{Bytes: max(0, progress.Bytes), TotalBytes: max(0, progress.TotalBytes), BytesPerSecond: max(0, progress.BytesPerSecond)}
	status.Summary = Size(status.Bytes)
	if status.TotalBytes > 0 {
		status.Percent = int32(min(float64(status.Bytes)/float64(status.TotalBytes)*whole, whole-1))
		status.Summary = fmt.Sprintf("%d%% of %s", status.Percent, Size(status.TotalBytes))
	}
	if status.BytesPerSecond > 0 {
		status.Summary += ", " + Size(status.BytesPerSecond) + "/s"
	}
	return status
}

// StatusStages returns how a backup spent its time, as a status has it; nil if that is unknown.
func StatusStages(spent *Spent) *v1.BackupStages {
	if spent == nil {
		return nil
	}
	span := func(milliseconds int64) string {
		return strconv.FormatFloat(float64(max(0, milliseconds))/1000, 'f', 1, 64) + "s"
	}
	return &v1.BackupStages{
		Wait: span(spent.Wait), Copy: span(spent.Copy), Rest: span(spent.Rest), Upload: span(spent.Upload), Finish: span(spent.Finish),
	}
}

// Size formats a number of bytes for users, as Kubernetes writes quantities: 980, 1.2Gi, 180Mi.
func Size(bytes int64) string {
	const kibi = 1024
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	value, unit := float64(bytes), 0
	for math.Round(value*10)/10 >= kibi && unit < len(units)-1 {
		value /= kibi
		unit++
	}
	digits := 1
	if unit == 0 || value >= 100 { // 180Mi is precise enough
		digits = 0
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', digits, 64), ".0") + units[unit]
}
