package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

func TestLogLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	options := LogOptions{Level: "debug", Format: "json"}
	core, err := options.core(&out)
	if err != nil {
		t.Fatal(err)
	}
	log := newLogger(core)
	log.Info("one", "kind", "MySQLCluster")
	log.V(1).Info("two")
	log.V(2).Info("not said")
	log.Error(errors.New("cause"), "three")
	lines := []map[string]any{}
	for decoder := json.NewDecoder(&out); decoder.More(); {
		line := map[string]any{}
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if len(lines) != 3 || lines[0]["kind"] != "MySQLCluster" || lines[1]["level"] != "debug" || lines[2]["error"] != "cause" {
		t.Errorf("logged %v", lines)
	}
}
