package backup

import (
	"fmt"
	"strings"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// StatusProgress is the progress as a status has it. What is through is never more than 99 percent: 100 is said by the outcome.
func StatusProgress(progress Progress) v1.TransferProgress {
	status := v1.TransferProgress{Bytes: progress.Bytes, TotalBytes: progress.TotalBytes, BytesPerSecond: progress.BytesPerSecond}
	if progress.TotalBytes > 0 {
		status.Percent = int32(max(0, min(99, float64(progress.Bytes)/float64(progress.TotalBytes)*100)))
	}
	status.Summary = summary(progress, status.Percent)
	return status
}

// summary says it for people: "42% of 1.2Gi, 180Mi/s", or "310Mi, 180Mi/s" where the whole is not known.
func summary(progress Progress, percent int32) string {
	text := Size(progress.Bytes)
	if progress.TotalBytes > 0 {
		text = fmt.Sprintf("%d%% of %s", percent, Size(progress.TotalBytes))
	}
	if progress.BytesPerSecond > 0 {
		text += ", " + Size(progress.BytesPerSecond) + "/s"
	}
	return text
}

// Size writes bytes for people in Kubernetes' binary units, with two digits at least: 980, 1.2Gi, 180Mi.
func Size(bytes int64) string {
	value, unit := float64(bytes), ""
	for _, next := range []string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, next
	}
	if unit == "" || value >= 10 {
		return fmt.Sprintf("%.0f%s", value, unit)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + unit
}
