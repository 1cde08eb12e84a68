package v1

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MicroTime is a time that is written with microseconds, and read with any fraction of a second, or without one.
type MicroTime struct{ metav1.MicroTime }

// NewMicroTime returns a time.
func NewMicroTime(at time.Time) MicroTime { return MicroTime{metav1.NewMicroTime(at)} }

// UnmarshalJSON implements json.Unmarshaler.
func (t *MicroTime) UnmarshalJSON(text []byte) error {
	var read *time.Time // RFC 3339
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*t = MicroTime{}
	if read != nil {
		t.Time = read.Local()
	}
	return nil
}
