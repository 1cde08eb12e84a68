package transfer

import (
	"fmt"
	"strconv"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// StatusProgress returns the progress as a status has it. It replaces impossible values, such as negative numbers, by zero.
func StatusProgress(progress protocol.Progress) v1.TransferProgress {
	status := v1.TransferProgress{Bytes: max(0, progress.Bytes), TotalBytes: max(0, progress.TotalBytes), BytesPerSecond: max(0, progress.BytesPerSecond)}
	status.Summary = protocol.Size(status.Bytes)
	if status.TotalBytes > 0 {
		status.Percent = progress.Percent()
		status.Summary = fmt.Sprintf("%d%% of %s", status.Percent, protocol.Size(status.TotalBytes))
	}
	if status.BytesPerSecond > 0 {
		status.Summary += ", " + protocol.Size(status.BytesPerSecond) + "/s"
	}
	return status
}

// StatusStages returns how a backup spent its time, as a status has it; nil if that is unknown.
func StatusStages(spent *protocol.Spent) *v1.BackupStages {
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
