package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// storedPage is how many keys are read from etcd at once.
const storedPage = 1000

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
			from = append(found.Key, 0)
		}
	}
	return stored
}

type keyValue struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// storedRange asks etcd's JSON gateway (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/).
func (s *Server) storedRange(t *testing.T, from, end []byte) (page []keyValue, more bool) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"key": from, "range_end": end, "limit": storedPage})
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/v3/kv/range", s.etcdPort(t))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		KVs  []keyValue `json:"kvs"`
		More bool       `json:"more"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("read from etcd: status %s, error %v", response.Status, err)
	}
	return answer.KVs, answer.More
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
