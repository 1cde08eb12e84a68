package main

import (
	"math"
	"testing"
)

func TestQuantileIsOfWhatCameBetween(t *testing.T) {
	t.Parallel()
	before := map[string]float64{
		`mysql_operator_reconcile_duration_seconds_bucket{kind="MySQLCluster",le="0.001"}`: 100,
		`mysql_operator_reconcile_duration_seconds_bucket{kind="MySQLCluster",le="0.01"}`:  100,
		`mysql_operator_reconcile_duration_seconds_bucket{kind="MySQLCluster",le="+Inf"}`:  100,
	}
	after := map[string]float64{
		`mysql_operator_reconcile_duration_seconds_bucket{kind="MySQLCluster",le="0.001"}`: 150,
		`mysql_operator_reconcile_duration_seconds_bucket{kind="MySQLCluster",le="0.01"}`:  199,
		`mysql_operator_reconcile_duration_seconds_bucket{kind="MySQLCluster",le="+Inf"}`:  200,
		`mysql_operator_reconcile_duration_seconds_bucket{kind="ConfigMonitor",le="+Inf"}`: 9000,
	}
	for share, want := range map[float64]float64{0.25: 0.0005, 0.5: 0.001, 0.99: 0.01, 1: 0.01} {
		if got := quantile(share, durations(before), durations(after)); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v of the passes took at most %v s, want %v", share, got, want)
		}
	}
	if got := quantile(0.5, durations(after), durations(after)); !math.IsNaN(got) {
		t.Errorf("no pass took %v s", got)
	}
}

func TestRequestsAreToldApart(t *testing.T) {
	t.Parallel()
	all := map[string]float64{
		`mysql_operator_api_requests_total{code="200",resource="secrets",verb="get"}`:                                          4,
		`mysql_operator_api_requests_total{code="200",resource="leases.coordination.k8s.io",verb="update"}`:                    30,
		`mysql_operator_api_requests_total{code="200",resource="statefulsets.apps",verb="apply"}`:                              2,
		`mysql_operator_api_requests_total{code="201",resource="selfsubjectaccessreviews.authorization.k8s.io",verb="create"}`: 9,
		`mysql_operator_reconcile_total{kind="MySQLCluster",result="done"}`:                                                    7,
		`mysql_operator_reconcile_total{kind="MySQLCluster",result="cache_behind"}`:                                            5,
		`mysql_operator_reconcile_total{kind="MySQLBackupInstance",result="done"}`:                                             3,
	}
	if got := [3]float64{requests(all), writes(all), passes(all)}; got != [3]float64{15, 2, 7} {
		t.Errorf("requests, writes and passes are %v", got)
	}
}
