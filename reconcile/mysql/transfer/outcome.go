package transfer

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// The exit statuses of the programs.
const (
	// ExitDone is success.
	ExitDone = 0
	// ExitRetry asks the Job for another attempt.
	ExitRetry = 1
	// ExitRefused says that trying again is of no use: the Job fails at once.
	ExitRefused = 3
)

// Outcome is how a program ended: the termination message of its Pod, one JSON document.
type Outcome struct {
	// Reason is one of the constants, ReasonCompleted for success; Message is for people.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Source is the member that was copied, ServerVersion its version.
	Source        string `json:"source,omitempty"`
	ServerVersion string `json:"serverVersion,omitempty"`
	// GTIDExecuted is the set that is certainly in the backup. Empty with GTIDsLeftOut if it is too long for a termination message; the
	// manifest has it.
	GTIDExecuted string `json:"gtidExecuted,omitempty"`
	GTIDsLeftOut bool   `json:"gtidsLeftOut,omitempty"`
	// Checksum is that of the manifest: sha256:….
	Checksum string `json:"checksum,omitempty"`
	// DataSize is how many bytes the files of the copy have together, Size how many the archive takes.
	DataSize int64 `json:"dataSize,omitempty"`
	Size     int64 `json:"size,omitempty"`
	// Spent is where the time of a backup went; nil where it was made by an earlier attempt.
	Spent *Spent `json:"spent,omitempty"`
	// UID is that of the instance whose backup it is, Instance its name, as the manifest has them.
	UID      string `json:"uid,omitempty"`
	Instance string `json:"instance,omitempty"`
	// Adopted says that nothing was restored: the volume had begun as this very backup before. Used says that a cluster has used it since, so
	// that it holds something else now.
	Adopted bool `json:"adopted,omitempty"`
	Used    bool `json:"used,omitempty"`
}

// Spent says what an attempt at a backup took its time for, in milliseconds. Together they are the time from its beginning to its end.
type Spent struct {
	// Wait is until a member was found whose copy could begin. Copy is what the member took to deliver, Rest how long it was left alone for
	// the sake of its clients, and Upload how long it had to wait until what it had delivered was compressed, encrypted and stored. Finish is
	// what came after the copy: the last pieces are stored, and the manifest is written and read back.
	Wait   int64 `json:"wait"`
	Copy   int64 `json:"copy"`
	Rest   int64 `json:"rest"`
	Upload int64 `json:"upload"`
	Finish int64 `json:"finish"`
}

// maxMessage is how much of a termination message kubelet keeps, in bytes; of a longer one it keeps the end (Kubernetes docs, "Determine
// the Reason for Pod Failure").
const maxMessage = 4096

// Encode writes the outcome so that it fits into a termination message: the text is cut first, then the GTID set is left out.
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
			return nil, fmt.Errorf("write outcome: %d bytes are more than a termination message takes", len(content))
		}
	}
}

// shortMessage is how much of a message is kept at the cost of a GTID set, in bytes.
const shortMessage = 512

// cut shortens a text to at most limit bytes at the boundary of a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// ReadOutcome reads a termination message; ok is false where it is not an outcome, such as the last lines of a log.
func ReadOutcome(message string) (outcome Outcome, ok bool) {
	if err := json.Unmarshal([]byte(message), &outcome); err != nil || outcome.Reason == "" {
		return Outcome{}, false
	}
	return outcome, true
}

// Progress is how far a running program has come.
type Progress struct {
	// Stage is what it does, in a word or two.
	Stage string `json:"stage"`
	// Bytes of the data directory are through, of TotalBytes about; 0 is not known yet.
	Bytes      int64 `json:"bytes"`
	TotalBytes int64 `json:"totalBytes"`
	// BytesPerSecond is the rate of the last seconds.
	BytesPerSecond int64 `json:"bytesPerSecond"`
	// Source is the member that is copied, for a backup.
	Source string `json:"source,omitempty"`
}
