package objects

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"

	"k8s.io/client-go/rest"
)

// mysqlCluster is a MySQLCluster that has run for a while; %05[1]d and %[2]s stand for its number and further fields of its spec.
const mysqlCluster = `{"apiVersion":"cr.mysqloperator.grtl.github.com/v1","kind":"MySQLCluster","metadata":{"name":"cluster-%05[1]d","namespace":"default",
"uid":"00000000-0000-0000-0000-0000000%05[1]d","resourceVersion":"%[1]d","generation":2,"creationTimestamp":"2026-11-21T12:00:00Z",
"managedFields":[{"manager":"kubectl","operation":"Apply","apiVersion":"cr.mysqloperator.grtl.github.com/v1","time":"2026-11-21T12:00:00Z","fieldsType":"FieldsV1",
"fieldsV1":{"f:spec":{"f:image":{},"f:port":{},"f:replicas":{},"f:secret":{},"f:storage":{},"f:config":{"f:max_connections":{}}}}},
{"manager":"mysql-operator-status","operation":"Apply","apiVersion":"cr.mysqloperator.grtl.github.com/v1","time":"2026-11-21T12:00:00Z","fieldsType":"FieldsV1","subresource":"status",
"fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}},
"f:endpoints":{"f:read":{},"f:write":{}},"f:epoch":{},"f:inSync":{},"f:members":{},"f:phase":{},"f:primary":{}}}}]},
"spec":{"secret":"my-secret","port":3306,"replicas":3,"storage":"10Gi","image":"mysql:latest","config":{"max_connections":"500","innodb_buffer_pool_size":"1G"},
"durability":{"whenReplicasLost":"Continue","gracePeriodSeconds":10},"resources":{"requests":{"cpu":"500m","memory":"2Gi"},"limits":{"memory":"2Gi"}}%[2]s},
"status":{"observedGeneration":2,"phase":"Ready","primary":"cluster-0","epoch":1,"inSync":["cluster-0","cluster-1","cluster-2"],"requiredAcks":1,"replicas":3,"readyReplicas":3,
"readySummary":"3/3","selector":"app.kubernetes.io/instance=cluster","version":"9.7.4","image":"mysql:latest","endpoints":{"write":"cluster.default.svc:3306","read":"cluster-read.default.svc:3306"},
"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"all members serve","lastTransitionTime":"2026-11-21T12:00:00Z","observedGeneration":2},
{"type":"Reconciling","status":"False","reason":"Ready","message":"nothing is to be done","lastTransitionTime":"2026-11-21T12:00:00Z","observedGeneration":2}],
"members":[{"name":"cluster-0","role":"Primary","state":"Serving","gtidExecuted":"00000000-0000-0000-0000-000000000001:1-1000","version":"9.7.4"},
{"name":"cluster-1","role":"Replica","state":"Serving","gtidExecuted":"00000000-0000-0000-0000-000000000001:1-1000","lagSeconds":0,"version":"9.7.4"},
{"name":"cluster-2","role":"Replica","state":"Serving","gtidExecuted":"00000000-0000-0000-0000-000000000001:1-1000","lagSeconds":0,"version":"9.7.4"}]}}`

// manyClusters answers lists of count MySQLClusters, of which every hundredth is paused.
func manyClusters(count int) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		from, _ := strconv.Atoi(request.URL.Query().Get("continue"))
		limit, _ := strconv.Atoi(request.URL.Query().Get("limit"))
		until, next := min(count, from+limit), ""
		if until < count {
			next = strconv.Itoa(until)
		}
		page := bytes.Buffer{}
		fmt.Fprintf(&page, `{"apiVersion":"cr.mysqloperator.grtl.github.com/v1","kind":"MySQLClusterList","metadata":{"resourceVersion":"1","continue":%q},"items":[`, next)
		for at := from; at < until; at++ {
			separator, paused := "", ""
			if at > from {
				separator = ","
			}
			if at%100 == 0 {
				paused = `,"paused":true`
			}
			fmt.Fprintf(&page, separator+mysqlCluster, at, paused)
		}
		page.WriteString("]}")
		writer.Header().Set("Content-Type", "application/json")
		_, _ = writer.Write(page.Bytes())
	}
}

// BenchmarkCheck checks 10,000 MySQLClusters, served as JSON over HTTP, against an edition of their definition without a field. It reads
// the size of the heap before, after the check of each page, and at the end, each time after a garbage collection.
func BenchmarkCheck(b *testing.B) {
	const objects = 10_000
	has := ourDefinitions(b)["mysqlclusters.cr.mysqloperator.grtl.github.com"]
	wants := has.DeepCopy()
	delete(wants.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "paused")
	answer, during, measuring := manyClusters(objects), uint64(0), true
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if measuring {
			during = max(during, heap())
		}
		answer(writer, request)
	}))
	defer server.Close()
	checker, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	check := func() {
		got, err := checker.Check(b.Context(), has, wants)
		if err != nil || got.Seen != objects || got.Harmed != objects/100 {
			b.Fatalf("seen %d, harmed %d: %v, error %v", got.Seen, got.Harmed, got.Findings, err)
		}
	}
	before := heap()
	check()
	measuring = false
	for b.Loop() {
		check()
	}
	b.ReportMetric(float64(objects*b.N)/b.Elapsed().Seconds(), "objects/s")
	b.ReportMetric(float64(before)/(1<<20), "MiB-before")
	b.ReportMetric(float64(during)/(1<<20), "MiB-during")
	b.ReportMetric(float64(heap())/(1<<20), "MiB-after")
}

func heap() uint64 {
	runtime.GC()
	stats := runtime.MemStats{}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
