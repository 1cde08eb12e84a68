package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// recorder is a test that remembers what failed it, to say it once more below all that a failed test shows: who reads a long log, or the
// end of one that was cut off, finds the reason there.
type recorder struct {
	*testing.T

	mu   sync.Mutex
	said []string
}

func (r *recorder) Error(values ...any) {
	r.Helper()
	r.remember(fmt.Sprintln(values...))
	r.T.Error(values...)
}

func (r *recorder) Errorf(format string, values ...any) {
	r.Helper()
	r.remember(fmt.Sprintf(format, values...))
	r.T.Errorf(format, values...)
}

func (r *recorder) Fatal(values ...any) {
	r.Helper()
	r.remember(fmt.Sprintln(values...))
	r.T.Fatal(values...)
}

func (r *recorder) Fatalf(format string, values ...any) {
	r.Helper()
	r.remember(fmt.Sprintf(format, values...))
	r.T.Fatalf(format, values...)
}

func (r *recorder) remember(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, strings.TrimSpace(text))
}

// reasons are the failures so far, a paragraph each.
func (r *recorder) reasons() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.said, "\n")
}
