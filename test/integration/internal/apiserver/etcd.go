package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// storedPage is how many keys are read from etcd at once, putsAtOnce how many are written; etcd allows 128
// (its --max-txn-ops).
const (
	storedPage = 1000
	putsAtOnce = 100
)

// Stored returns what etcd holds under a prefix of keys, "/registry/GROUP/PLURAL/" for custom resources, as the API server wrote it: in the
// version objects are stored in, whatever the API shows.
func (s *Server) Stored(t *testing.T, prefix string) map[string][]byte {
	t.Helper()
	stored, from, more := map[string][]byte{}, []byte(prefix), true
	end := []byte(prefix)
	end[len(end)-1]++
	for more {
		var page []keyValue
		page, more = s.storedRange(t, from, end)
		for _, found := range page {
			stored[string(found.Key)] = found.Value
			from = append(slices.Clone(found.Key), 0) // the least key behind it
		}
	}
	return stored
}

type keyValue struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// Store writes to etcd behind the API server's back, which learns of it as of a write by another API server. It is for having many objects
// in little time: what is written should be like what Stored returned.
func (s *Server) Store(t *testing.T, values map[string][]byte) {
	t.Helper()
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(values)), putsAtOnce) {
		puts := make([]any, 0, len(keys))
		for _, key := range keys {
			puts = append(puts, map[string]any{"request_put": keyValue{Key: []byte(key), Value: values[key]}})
		}
		s.etcd(t, "txn", map[string]any{"success": puts}, &struct{}{})
	}
}

func (s *Server) storedRange(t *testing.T, from, end []byte) (page []keyValue, more bool) {
	t.Helper()
	var answer struct {
		KVs  []keyValue `json:"kvs"`
		More bool       `json:"more"`
	}
	s.etcd(t, "range", map[string]any{"key": from, "range_end": end, "limit": storedPage}, &answer)
	return answer.KVs, answer.More
}

// etcd asks its JSON gateway (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/).
func (s *Server) etcd(t *testing.T, operation string, question, answer any) {
	t.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/v3/kv/%s", s.etcdPort(t), operation)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("ask etcd for %s: status %s, error %v", operation, response.Status, err)
	}
}

func (s *Server) etcdPort(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.options.Dir, "cluster", "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Ports struct {
			EtcdClient int `json:"etcdClient"`
		} `json:"ports"`
	}
	if err := json.Unmarshal(content, &state); err != nil {
		t.Fatal(err)
	}
	return state.Ports.EtcdClient
}
