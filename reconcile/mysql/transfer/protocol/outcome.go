package protocol

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// The exit statuses of the programs.
const (
	// ExitDone is success.
	ExitDone = 0
	// ExitRetry makes the Job retry.
	ExitRetry = 1
	// ExitRefused means that a retry cannot succeed: the Job fails at once.
	ExitRefused = 3
)

// Outcome is a program's final report: the termination message of its Pod, one JSON document.
type Outcome struct {
	// Reason is one of the constants, ReasonCompleted for success; Message is for users.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Source is the member that was copied, ServerVersion its MySQL version.
	Source        string `json:"source,omitempty"`
	ServerVersion string `json:"serverVersion,omitempty"`
	// GTIDExecuted is the set of transactions that are certainly in the backup. It is empty with GTIDsLeftOut if it is too long for a
	// termination message; the manifest has it.
	GTIDExecuted string `json:"gtidExecuted,omitempty"`
	GTIDsLeftOut bool   `json:"gtidsLeftOut,omitempty"`
	// Checksum is the checksum of the manifest: sha256:….
	Checksum string `json:"checksum,omitempty"`
	// DataSize is the total size of the copy's files in bytes, Size that of the archive.
	DataSize int64 `json:"dataSize,omitempty"`
	Size     int64 `json:"size,omitempty"`
	// Spent is how the time of a backup was spent; nil if an earlier attempt made it.
	Spent *Spent `json:"spent,omitempty"`
	// UID is the UID of the backup's instance, Instance its name, as in the manifest.
	UID      string `json:"uid,omitempty"`
	Instance string `json:"instance,omitempty"`
	// Adopted means that nothing was restored: the volume began as this backup before. Used means that a cluster has used it since, so that
	// it now holds other data.
	Adopted bool `json:"adopted,omitempty"`
	Used    bool `json:"used,omitempty"`
}

// Spent is how an attempt at a backup spent its time, in milliseconds. The sum is the time from its beginning to its end.
type Spent struct {
	// Wait is the time until the copy of a member began. Copy is the time in which the member delivered data. Rest is the time of pauses
	// for the member's clients. Upload is the time in which the member waited until its data was compressed, encrypted and stored. Finish
	// is the time after the copy, in which the last pieces are stored, and the manifest is written and read back.
	Wait   int64 `json:"wait"`
	Copy   int64 `json:"copy"`
	Rest   int64 `json:"rest"`
	Upload int64 `json:"upload"`
	Finish int64 `json:"finish"`
}

// maxMessage is how many bytes of a termination message kubelet keeps; of a longer one it keeps the end (Kubernetes docs, "Determine the
// Reason for Pod Failure").
const maxMessage = 4096

// Encode returns the outcome in a size that fits into a termination message. It first cuts the message, then omits the GTID set.
func (o Outcome) Encode() ([]byte, error) {
	for {
		content, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("write outcome: %w", err)
		}
		over := len(content) - maxMessage
		switch {
		case over <= 0:
			return content, nil
		case len(o.Message) > shortMessage:
			o.Message = cut(o.Message, max(shortMessage, len(o.Message)-over))
		case o.GTIDExecuted != "":
			o.GTIDExecuted, o.GTIDsLeftOut = "", true
		default:
			return nil, fmt.Errorf("write outcome: %d bytes are too many for a termination message", len(content))
		}
	}
}

// shortMessage is how many bytes of a message are kept even if the GTID set must be omitted for them.
const shortMessage = 512

// cut shortens a text to at most limit bytes, at a character boundary.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// ReadOutcome reads a termination message; ok is false if it is no outcome, for example the last lines of a log.
func ReadOutcome(message string) (outcome Outcome, ok bool) {
	if err := json.Unmarshal([]byte(message), &outcome); err != nil || outcome.Reason == "" {
		return Outcome{}, false
	}
	return outcome, true
}

// Progress is the progress of a running program.
type Progress struct {
	// Stage is what the program does, in a word or two.
	Stage string `json:"stage"`
	// Bytes is how much of the data directory has been copied, TotalBytes its approximate size; 0 if unknown.
	Bytes      int64 `json:"bytes"`
	TotalBytes int64 `json:"totalBytes"`
	// BytesPerSecond is the rate of the last seconds.
	BytesPerSecond int64 `json:"bytesPerSecond"`
	// Source is the member that is copied, for a backup.
	Source string `json:"source,omitempty"`
}

// Percent is how much has been copied, in percent; 0 if the size is unknown. It never reaches 100: the data may grow, the end takes time,
// and only the Outcome reports that the transfer is over.
func (p Progress) Percent() int32 {
	const whole = 100
	if p.TotalBytes <= 0 {
		return 0
	}
	return int32(max(0, min(float64(p.Bytes)/float64(p.TotalBytes)*whole, whole-1)))
}
