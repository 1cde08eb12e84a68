package testbed

import (
	"testing"

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
