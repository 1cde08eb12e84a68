package transfer

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/schema"
)

// TestJobRefusal finds the last message of the Job's controller.
func TestJobRefusal(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	event := func(minutes int, reason, message string) corev1.Event {
		return corev1.Event{Reason: reason, Message: message, LastTimestamp: metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))}
	}
	for name, test := range map[string]struct {
		told []corev1.Event
		want string
	}{
		"nothing":       {},
		"refused":       {[]corev1.Event{event(1, "FailedCreate", "Error creating: exceeded quota")}, "exceeded quota"},
		"created since": {[]corev1.Event{event(2, "SuccessfulCreate", "Created pod: x"), event(1, "FailedCreate", "Error creating: no")}, ""},
		"refused again": {[]corev1.Event{event(3, "FailedCreate", "Error creating: again"), event(2, "SuccessfulCreate", "Created pod: x")}, "again"},
		"other events":  {[]corev1.Event{event(1, "FailedCreate", "no"), event(2, "Suspended", "Job suspended")}, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := []unstructured.Unstructured{}
			for _, one := range test.told {
				content, err := schema.Encode(one)
				if err != nil {
					t.Fatal(err)
				}
				objects = append(objects, unstructured.Unstructured{Object: content})
			}
			if got, err := JobRefusal(objects); err != nil || got != test.want {
				t.Errorf("got %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

// TestAnEventCountsFromItsLastReport: an event of a series has its time in another field than a single one.
func TestAnEventCountsFromItsLastReport(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	created := corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(1))}}
	last, first, series := created, created, created
	last.LastTimestamp = metav1.NewTime(at(2))
	first.EventTime = metav1.NewMicroTime(at(3))
	series.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(4))}
	for minute, event := range map[int]corev1.Event{1: created, 2: last, 3: first, 4: series} {
		if got := toldAt(event); !got.Equal(at(minute)) {
			t.Errorf("got %s, want minute %d", got, minute)
		}
	}
}
