package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/failover/history"
)

// raw is a round as a line of JSON. Times are seconds.
type raw struct {
	Fault string    `json:"fault"`
	Round int       `json:"round"`
	Seed  uint64    `json:"seed"`
	At    time.Time `json:"at"`
	// Primary led before the fault, Leader after it.
	Primary string `json:"primary"`
	Leader  string `json:"leader"`
	Epoch   string `json:"epoch"`
	// WithOperator means that the leading operator was on the primary's node.
	WithOperator bool `json:"withOperator"`
	// Gap is the longest time without acknowledged writes. Begin is when it began, counted from the fault.
	Gap       float64 `json:"gap"`
	Begin     float64 `json:"begin"`
	SecondGap float64 `json:"secondGap"`
	ReadGap   float64 `json:"readGap"`
	Rejoin    float64 `json:"rejoin"`
	Settled   bool    `json:"settled"`

	Operations    int                 `json:"operations"`
	Violated      []int               `json:"violated,omitempty"`
	Unchecked     []int               `json:"unchecked,omitempty"`
	Violations    []history.Operation `json:"violations,omitempty"`
	Unwritten     []history.Operation `json:"unwritten,omitempty"`
	StaleReads    int                 `json:"staleReads"`
	DualPrimaries []string            `json:"dualPrimaries,omitempty"`
	FalseFailover bool                `json:"falseFailover"`
	Error         string              `json:"error,omitempty"`
}

func rawOf(one round, seed uint64, err error) raw {
	line := raw{
		Fault: one.fault.name, Round: one.number, Seed: seed, At: one.at.UTC(),
		Primary: one.before.leader, Leader: one.after.leader, Epoch: one.after.epoch, WithOperator: one.isWithOperator,
		Gap: exact(one.silent.length), Begin: exact(one.silent.after), SecondGap: exact(one.further.length),
		ReadGap: exact(one.findings.readGap), Rejoin: exact(one.rejoin), Settled: one.isSettled,
		Operations: one.findings.operations, Violated: one.findings.verdict.Violated, Unchecked: one.findings.verdict.Unchecked,
		Violations: one.findings.violations, Unwritten: one.findings.unwritten,
		StaleReads: one.findings.stale, FalseFailover: one.isFalse(),
	}
	for _, both := range one.findings.dual {
		line.DualPrimaries = append(line.DualPrimaries, fmt.Sprintf("%s after the fault: %s", both.from.Sub(one.at).Round(time.Millisecond), both))
	}
	if err != nil {
		line.Error = err.Error()
	}
	return line
}

// exact returns seconds, with milliseconds.
func exact(length time.Duration) float64 { return length.Round(time.Millisecond).Seconds() }

// writeRaw adds a line.
func writeRaw(to io.Writer, line raw) error {
	if err := json.NewEncoder(to).Encode(line); err != nil {
		return fmt.Errorf("write the raw times of round %d: %w", line.Round, err)
	}
	return nil
}

// openRaw creates the file of the raw times: by default, one beside the kubeconfig.
func openRaw(path, kubeconfig string, now time.Time) (*os.File, error) {
	if path == "" {
		path = filepath.Join(filepath.Dir(kubeconfig), "bench", "failover-"+now.UTC().Format("20060102-150405")+".jsonl")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("make a folder for the raw times: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("make the file of raw times: %w", err)
	}
	return file, nil
}
