package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/mysql-operator/mysql-operator/schema/mysql/settings"
)

// Answer is a MySQL image's version and, if asked, its judgement of settings.
type Answer struct {
	Version string
	// Accepted reports whether its mysqld would start with the settings and has the plugins. Refused are the settings, spelled as in the
	// manual, and the plugins that mysqld complained about. Refused may be empty even if mysqld would not start.
	Accepted bool
	Refused  []string
}

// checkSettings makes mysqld check settings, without any data (manual, "Server Configuration Validation").
func checkSettings(ctx context.Context, answer Answer, file string) (Answer, error) {
	_, said, err := askMysqld(ctx, "--defaults-file="+file, "--validate-config")
	// A mysqld that was killed or timed out has not answered.
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || !exit.Exited() || ctx.Err() != nil) {
		return answer, fmt.Errorf("ask mysqld of this image whether it accepts the settings: %w", err)
	}
	starts := err == nil
	text, err := os.ReadFile(file)
	if err != nil {
		return answer, fmt.Errorf("read the settings to check: %w", err)
	}
	// mysqld starts even if it cannot load a plugin.
	answer.Refused = complaints(said, string(text))
	answer.Accepted = starts && len(answer.Refused) == 0
	return answer, nil
}

// complaints returns the settings and plugins of a my.cnf that mysqld complains about (MySQL source, share/messages_to_error_log.txt:
// "unknown variable 'NAME=VALUE'.", "unknown option '--NAME'.", "Unknown suffix 'x' used for variable 'NAME' …", "Error while setting value
// 'VALUE' to 'NAME'.", "Couldn't load plugin named 'LIBRARY' with soname 'LIBRARY'.").
func complaints(said []byte, text string) []string {
	names, plugins := given(text)
	var found []string
	note := func(what string, of map[string]bool) {
		if of[what] && !slices.Contains(found, what) {
			found = append(found, what)
		}
	}
	name := regexp.MustCompile(`(?:nknown variable|unknown option|for variable|' to) '(?:--)?([a-z][a-z0-9_-]*)`)
	library := regexp.MustCompile(`with soname '([A-Za-z0-9_.-]+)'`)
	for line := range bytes.Lines(said) {
		if !bytes.Contains(line, []byte("[ERROR]")) {
			continue
		}
		for _, match := range name.FindAllSubmatch(line, -1) {
			note(settings.Plain(string(match[1])), names)
		}
		for _, match := range library.FindAllSubmatch(line, -1) {
			note(string(match[1]), plugins)
		}
	}
	return found
}

// given returns the names of the settings, and the plugins, in a my.cnf.
func given(text string) (names, plugins map[string]bool) {
	names, plugins = map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(text) {
		spelled, value, _ := strings.Cut(line, "=")
		name := settings.Plain(strings.TrimSpace(spelled))
		names[name] = true
		if name == "plugin_load_add" {
			plugins[strings.TrimSpace(value)] = true
		}
	}
	return names, plugins
}

const (
	wordAccepted = "accepted"
	wordRefused  = "refused"
	// mostRefused limits how many settings an answer names, longestAnswer its length in bytes.
	mostRefused   = 8
	longestAnswer = 2048
)

// report returns an answer in the form that ReadVersion and ReadAnswer read.
func (a Answer) report(withSettings bool) string {
	switch {
	case !withSettings:
		return a.Version
	case a.Accepted:
		return a.Version + " " + wordAccepted
	}
	return strings.Join(append([]string{a.Version, wordRefused}, a.Refused[:min(len(a.Refused), mostRefused)]...), " ")
}

// ReadAnswer reads a report about settings from a container of a user's image, which the operator does not trust. It returns only names
// that the operator asked about.
func ReadAnswer(report string, config map[string]string, plugins []string) (answer Answer, ok bool) {
	words := strings.Split(report, " ")
	if len(report) > longestAnswer || len(words) < 2 {
		return Answer{}, false
	}
	if answer.Version, ok = ReadVersion(words[0]); !ok {
		return Answer{}, false
	}
	switch {
	case words[1] == wordAccepted && len(words) == 2:
		answer.Accepted = true
	case words[1] == wordRefused:
		asked := map[string]bool{}
		for name := range config {
			asked[settings.Plain(name)] = true
		}
		answer.Refused = slices.DeleteFunc(words[2:], func(name string) bool { return !asked[name] && !slices.Contains(plugins, name) })
	default:
		return Answer{}, false
	}
	return answer, true
}
