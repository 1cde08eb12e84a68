package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFindRefusal(t *testing.T) {
	t.Parallel()
	at := func(minute int, reason, message string) corev1.Event {
		return corev1.Event{Reason: reason, Message: message, LastTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))}
	}
	quota := `create Pod db-1 in StatefulSet db failed error: pods "db-1" is forbidden: exceeded quota: few`
	made := "create Pod db-1 in StatefulSet db successful"
	for story, test := range map[string]struct {
		missing []string
		told    []corev1.Event
		want    string
	}{
		"there is no event":  {[]string{"db-1"}, nil, ""},
		"a quota is used up": {[]string{"db-1"}, []corev1.Event{at(1, "FailedCreate", quota)}, `pods "db-1" is forbidden: exceeded quota: few`},
		"reported so often that Kubernetes combines the events": {[]string{"db-1"}, []corev1.Event{at(1, "FailedCreate", "(combined from similar events): "+quota)}, `pods "db-1" is forbidden: exceeded quota: few`},
		"it was made since, and deleted":                        {[]string{"db-1"}, []corev1.Event{at(2, "SuccessfulCreate", made), at(1, "FailedCreate", quota)}, ""},
		"it was made before":                                    {[]string{"db-1"}, []corev1.Event{at(1, "SuccessfulCreate", made), at(2, "FailedCreate", quota)}, `pods "db-1" is forbidden: exceeded quota: few`},
		"another Pod":                                           {[]string{"db-0"}, []corev1.Event{at(1, "FailedCreate", quota)}, ""},
		"a Pod whose name begins the same":                      {[]string{"db-1"}, []corev1.Event{at(1, "FailedCreate", `create Pod db-11 in StatefulSet db failed error: no`)}, ""},
		"one of a claim, not of a Pod":                          {[]string{"db-1"}, []corev1.Event{at(1, "FailedCreate", `create Claim data-db-1 Pod db-1 in StatefulSet db failed error: exceeded quota: space`)}, "exceeded quota: space"},
		"a deletion that failed says nothing":                   {[]string{"db-1"}, []corev1.Event{at(1, "FailedDelete", "delete Pod db-1 in StatefulSet db failed error: no")}, ""},
	} {
		got := ""
		if found := findRefusal(test.missing, test.told); found != nil {
			got = found.why
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", story, got, test.want)
		}
	}
}
