package tutorial

import (
	"regexp"
	"strings"
	"testing"
)

// block is a block of code of the document.
type block struct {
	// language is sh for what is pasted as it stands, console for commands and what they print.
	language, text string
	line           int
}

// blocksOf returns the blocks of a document that a shell can be asked about.
func blocksOf(document string) []block {
	found, inside := []block{}, false
	current := block{}
	for number, line := range strings.Split(document, "\n") {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !inside:
			current, inside = block{language: language, line: number + 2}, true
		case fence:
			inside = false
			if current.language == "sh" || current.language == "console" {
				found = append(found, current)
			}
		case inside:
			current.text += line + "\n"
		}
	}
	return found
}

// step is a command and what it is to print.
type step struct{ command, prints string }

// stepsOf cuts a console block at its prompts.
func stepsOf(text string) []step {
	steps := []step{}
	for line := range strings.Lines(text) {
		if command, isPrompt := strings.CutPrefix(line, "$ "); isPrompt {
			steps = append(steps, step{command: strings.TrimSpace(command)})
			continue
		}
		if len(steps) > 0 {
			steps[len(steps)-1].prints += line
		}
	}
	return steps
}

var (
	spaces = regexp.MustCompile(`[ \t]+`)
	ages   = regexp.MustCompile(`(?m) (\d+[smh])+$`)
	ending = regexp.MustCompile(`(?m)[ \t]+$`)
)

// plain takes out of an output what differs from one time to the next: how long ago something was, and how wide columns are.
func plain(output string) string {
	output = ending.ReplaceAllString(strings.TrimSpace(output), "")
	return ages.ReplaceAllString(spaces.ReplaceAllString(output, " "), " AGE")
}

// agrees reports whether an output is the one printed in the document, in which "…" stands for any text.
func agrees(output, printed string) bool {
	parts := strings.Split(plain(printed), "…")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile(`\A(?s:` + strings.Join(parts, ".*") + `)\z`).MatchString(plain(output))
}

func TestBlocksOf(t *testing.T) {
	t.Parallel()
	found := blocksOf("# A\n```sh\none\ntwo\n```\ntext\n```\nfigure\n```\n```console\n$ three\n3\n$ four\n```\n```go\nfive\n```\n")
	if len(found) != 2 || found[0] != (block{"sh", "one\ntwo\n", 3}) || found[1] != (block{"console", "$ three\n3\n$ four\n", 11}) {
		t.Errorf("found %+v", found)
	}
	if steps := stepsOf(found[1].text); len(steps) != 2 || steps[0] != (step{"three", "3\n"}) || steps[1] != (step{"four", ""}) {
		t.Errorf("the steps are %+v", steps)
	}
}

// TestAgrees keeps the tutorial's test honest: an output that differs is noticed.
func TestAgrees(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		output, printed string
		want            bool
	}{
		"the same":                     {"a\nb\n", "a\nb\n", true},
		"another column width and age": {"NAME     AGE\nworld    1m30s\n", "NAME   AGE\nworld  1s\n", true},
		"another name":                 {"NAME AGE\nearth 1s\n", "NAME AGE\nworld 1s\n", false},
		"one line more":                {"a\nb\n", "a\n", false},
		"one line less":                {"a\n", "a\nb\n", false},
		"anything":                     {"before\nmiddle\nafter\n", "before\n…\nafter\n", true},
		"anything but this":            {"before\nmiddle\n", "before\n…\nafter\n", false},
		"a pattern is no pattern":      {"axb", "a.b", false},
		"nothing where something was":  {"", "a", false},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			if got := agrees(test.output, test.printed); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
