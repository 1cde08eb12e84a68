package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
)

func TestRotationRequest(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	made, _ := signed(t, children.Names{Namespace: "shop", Cluster: "db"}, at)
	tests := map[string]struct {
		before, overlap string
		wants           bool
		gives           time.Duration
		fault           string
	}{
		"nothing":                     {"", "", false, clientOverlap, ""},
		"an older CA than asked for":  {"2026-11-21T13:00:00Z", "", true, clientOverlap, ""},
		"in another time zone":        {"2026-11-21T14:00:00+01:00", "", true, clientOverlap, ""},
		"made in that very second":    {"2026-11-21T12:00:00.5Z", "", false, clientOverlap, ""},
		"a CA that is newer":          {"2026-11-20T12:00:00Z", "", false, clientOverlap, ""},
		"a time that is yet to come":  {"2026-12-24T12:00:00Z", "", false, clientOverlap, ""},
		"without time for clients":    {"2026-11-21T13:00:00Z", "0s", true, 0, ""},
		"with more time for clients":  {"", "720h", false, 30 * day, ""},
		"no time":                     {"now", "", false, clientOverlap, `rotate-ca-before="now" is not a time such as`},
		"an empty time":               {" ", "", false, clientOverlap, `rotate-ca-before=" " is not a time such as`},
		"no duration":                 {"2026-11-21T13:00:00Z", "a week", true, clientOverlap, `rotate-ca-overlap="a week" is not a duration`},
		"less than no time":           {"", "-1h", false, clientOverlap, `rotate-ca-overlap="-1h" is not a duration`},
		"longer than any CA is there": {"", "100000h", false, clientOverlap, `rotate-ca-overlap="100000h" is not a duration`},
	}
	for name, test := range tests {
		annotations := map[string]string{}
		for key, value := range map[string]string{AnnotationRotate: test.before, AnnotationOverlap: test.overlap} {
			if value != "" {
				annotations[key] = value
			}
		}
		asked := rotationRequestOf(annotations)
		if wants := asked.wants(made.Leaf, at.Add(2*time.Hour)); wants != test.wants || asked.clientOverlap() != test.gives {
			t.Errorf("%s: it wants a new CA: %t, overlap %s", name, wants, asked.clientOverlap())
		}
		if (asked.fault == "") != (test.fault == "") || !strings.Contains(asked.fault, test.fault) {
			t.Errorf("%s: the fault is %q", name, asked.fault)
		}
	}
}
