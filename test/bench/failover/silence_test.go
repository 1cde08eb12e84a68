package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// noon is the moment of the fault in the stories.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// at makes an attempt, in milliseconds after the fault.
func at(id, began, ended int, isAcknowledged bool) attempt {
	return attempt{id: id, began: moment(began), ended: moment(ended), isAcknowledged: isAcknowledged}
}

func moment(milliseconds int) time.Time {
	return noon().Add(time.Duration(milliseconds) * time.Millisecond)
}

func gap(after, length int) silence {
	return silence{time.Duration(after) * time.Millisecond, time.Duration(length) * time.Millisecond}
}

func TestSilences(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		attempts []attempt
		want     []silence
	}{
		"nothing was written": {nil, nil},
		"nothing was acknowledged since": {
			[]attempt{at(1, -20, -10, true), at(2, 0, 1000, false)}, nil},
		"from the last acknowledged write before the fault": {
			[]attempt{at(1, -50, -40, true), at(2, -20, -10, true), at(3, 0, 500, false), at(4, 510, 600, true)}, []silence{gap(-10, 610)}},
		"a write before the fault that failed does not count": {
			[]attempt{at(1, -50, -40, true), at(2, -20, -10, false), at(3, 510, 600, true)}, []silence{gap(-40, 640)}},
		"without a write before the fault, from the fault": {
			[]attempt{at(1, 10, 100, true)}, []silence{gap(0, 100)}},
		"a write that was on its way is acknowledged: the time begins with its answer": {
			[]attempt{at(1, -30, -20, true), at(2, -5, 5, true), at(3, 700, 705, true)}, []silence{gap(5, 700), gap(-20, 25)}},
		"clients can write for a moment after the fault": {
			[]attempt{at(1, -10, -5, true), at(2, 5, 10, true), at(3, 20, 1020, false), at(4, 1030, 2010, true), at(5, 2020, 2025, true)},
			[]silence{gap(10, 2000), gap(-5, 15), gap(2010, 15)}},
		"a second interruption": {
			[]attempt{at(1, -10, 0, true), at(2, 3000, 3000, true), at(3, 3500, 4500, false), at(4, 4000, 5000, true)}, []silence{gap(0, 3000), gap(3000, 2000)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(story.want, silences(story.attempts, noon()), cmp.AllowUnexported(silence{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAcknowledgedSince(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		attempts     []attempt
		count, first int
	}{
		"nothing was written":                       {nil, 0, 0},
		"a request from before the fault":           {[]attempt{at(7, -1, 5, true)}, 0, 0},
		"two, and others that failed":               {[]attempt{at(1, -10, -5, true), at(2, 0, 5, true), at(3, 6, 7, false), at(4, 8, 9, true), at(5, 10, 11, false)}, 2, 2},
		"a late answer before the first of the new": {[]attempt{at(1, -10, 50, true), at(2, 60, 70, true)}, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count, first := acknowledgedSince(story.attempts, noon())
			if count != story.count || first != story.first {
				t.Errorf("got %d writes from %d on, want %d from %d on", count, first, story.count, story.first)
			}
		})
	}
}

func TestLost(t *testing.T) {
	t.Parallel()
	attempts := []attempt{at(1, 0, 1, true), at(2, 2, 3, false), at(3, 4, 5, true), at(4, 6, 7, true), at(5, 8, 9, false)}
	present := map[int]bool{1: true, 4: true, 5: true} // 5 was committed, though its client was told of an error
	if diff := cmp.Diff([]int{3}, lost(attempts, present)); diff != "" {
		t.Error(diff)
	}
}
