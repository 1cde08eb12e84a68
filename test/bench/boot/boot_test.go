package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseReadiness(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		content string
		want    map[string]bool
	}{
		"on its way": {
			"[+] definitions: ok\n[-] rights: the operator lacks get pods: grant them\n",
			map[string]bool{"definitions": true, "rights": false},
		},
		"ready":            {"[+] definitions: ok\n[+] rights: ok\n[+] caches: ok\nok\n", map[string]bool{"definitions": true, "rights": true, "caches": true}},
		"something else":   {"404 page not found\n", map[string]bool{}},
		"no answer at all": {"", map[string]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(story.want, parseReadiness(story.content)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAllServed(t *testing.T) {
	t.Parallel()
	// Where the definitions were there before, a client is served from the beginning; the operator's word is what is measured.
	unchanged := boot{served: 5 * time.Millisecond, said: 90 * time.Millisecond, ready: 200 * time.Millisecond}
	// Where it had to make them, a client may see the last one a moment after the operator does.
	fresh := boot{served: 700 * time.Millisecond, said: 690 * time.Millisecond, ready: 900 * time.Millisecond}
	if got := unchanged.allServed(); got != 90*time.Millisecond {
		t.Errorf("unchanged: got %s", got)
	}
	if got := fresh.allServed(); got != 700*time.Millisecond {
		t.Errorf("fresh: got %s", got)
	}
}
