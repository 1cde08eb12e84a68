package settings

import (
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Judgement is what the table knows of settings that somebody wants.
type Judgement struct {
	// Faults say which of them mysqld would not start with, or would take otherwise than written, and why.
	Faults []string
	// Unsure are those that only mysqld itself can judge: the table lacks the name, the release, or what the value may be.
	Unsure []string
}

// Judge judges settings for a release of MySQL, such as 9.7.4; empty is one that is not known. The order of what it returns does not depend
// on that of the settings.
func (t Table) Judge(config map[string]string, version string) Judgement {
	var judged Judgement
	release := releaseOf(version)
	for _, spelled := range slices.Sorted(maps.Keys(config)) {
		fault, unsure := t.judge(spelled, unquoted(strings.TrimSpace(config[spelled])), release)
		switch {
		case fault != "":
			judged.Faults = append(judged.Faults, spelled+" "+fault)
		case unsure:
			judged.Unsure = append(judged.Unsure, spelled)
		}
	}
	return judged
}

// unquoted is a value without the quotation marks around it, which mysqld takes off, too (manual, "Using Option Files").
func unquoted(value string) string {
	if last := len(value) - 1; last > 0 && value[0] == value[last] && (value[0] == '\'' || value[0] == '"') {
		return value[1:last]
	}
	return value
}

func (t Table) judge(spelled, value string, release release) (fault string, unsure bool) {
	name := Plain(spelled)
	variable, known := t[name]
	isLoose := name != strings.ReplaceAll(spelled, "-", "_")
	switch {
	case !known || t.isPrefixed(name):
		return "", true
	case variable.Refused == Runtime && isLoose:
		return "", false // mysqld warns, and ignores it
	case variable.Refused == Runtime:
		return "is no setting that mysqld reads at a start: remove it", false
	}
	has, sure := variable.isIn(release)
	if sure && !has {
		return notIn(release, isLoose), false
	}
	fault, isJudged := variable.judgeValue(value, release.isBounded())
	return fault, fault == "" && (!sure || !isJudged)
}

// notIn is what is wrong with a setting that a release does not have. One that begins with loose_ is ignored.
func notIn(release release, isLoose bool) string {
	if isLoose {
		return ""
	}
	return fmt.Sprintf("is no setting of MySQL %s: remove it", release.version)
}

// isPrefixed says whether mysqld reads a name as another one with a word before it, as skip_external_locking (manual, "Program Option
// Modifiers").
func (t Table) isPrefixed(name string) bool {
	for _, word := range []string{"skip_", "disable_", "enable_", "maximum_", "plugin_"} {
		if rest, found := strings.CutPrefix(name, word); found && t[rest].Name != "" {
			return true
		}
	}
	return false
}

// release is a release of MySQL, as far as the table describes it.
type release struct {
	version string
	// series is the one that describes it; empty where none does. since says that it is at least the oldest that is described, and no later
	// than the last: it has whatever all described ones have.
	series string
	since  bool
}

// leastPatch is the patch of a series from which on the table is certain to describe it.
func leastPatch(series string) int {
	return map[string]int{"8.0": 41, "8.4": 6, "9.7": 4, "26.7": 0}[series]
}

func releaseOf(version string) release {
	found := regexp.MustCompile(`^(\d{1,3})\.(\d{1,3})\.(\d{1,4})`).FindStringSubmatch(version)
	if found == nil {
		return release{}
	}
	number := func(at int) int {
		parsed, _ := strconv.Atoi(found[at]) // digits, and few
		return parsed
	}
	major, minor, patch := number(1), number(2), number(3)
	told := release{version: found[0], since: isBetween(major, minor, patch)}
	if series := fmt.Sprintf("%d.%d", major, minor); slices.Contains(described(), series) && patch >= leastPatch(series) {
		told.series = series
	}
	return told
}

// isBetween says whether a release is one from 8.0.41 to 26.7.
func isBetween(major, minor, patch int) bool {
	isLateEnough := major > 8 || major == 8 && (minor > 0 || patch >= leastPatch("8.0"))
	return isLateEnough && (major < 26 || major == 26 && minor <= 7)
}

// isBounded says whether ranges and values of enums are those of the table.
func (r release) isBounded() bool { return r.series == "9.7" || r.series == "26.7" }

// isIn says whether a release has the setting, and whether that is certain.
func (v Variable) isIn(r release) (has, sure bool) {
	switch {
	case r.series != "":
		return v.In(r.series), true
	case len(v.releases) == len(described()):
		return true, r.since
	}
	return false, false
}

// judgeValue says what is wrong with a value, and whether the table could tell.
func (v Variable) judgeValue(value string, isBounded bool) (fault string, isJudged bool) {
	switch v.Type {
	case Bool:
		return judgeBool(value)
	case Int, Float:
		return v.judgeNumber(value, isBounded)
	case Enum:
		return v.judgeEnum(value, isBounded)
	case Set, Text:
	}
	return "", false
}

// judgeBool: mysqld takes anything else as OFF, with a warning (MySQL source, mysys/my_getopt.cc, get_bool_argument).
func judgeBool(value string) (fault string, isJudged bool) {
	if value == "" {
		return "", false
	}
	if slices.Contains([]string{"on", "off", "true", "false", "0", "1"}, strings.ToLower(value)) {
		return "", true
	}
	return fmt.Sprintf("must be ON or OFF, not %q", value), true
}

// judgeNumber: mysqld stops at what is no number, and changes one that is out of its range, with a warning.
func (v Variable) judgeNumber(value string, isBounded bool) (fault string, isJudged bool) {
	pattern, kind := `^[+-]?\d{1,20}[kKmMgGtTpPeE]?$`, "a whole number, such as 500 or 128M"
	if v.Type == Float {
		return judgeFloat(value)
	}
	if !regexp.MustCompile(pattern).MatchString(value) {
		return fmt.Sprintf("must be %s, not %q", kind, value), true
	}
	if v.Least == "" || !isBounded {
		return "", true
	}
	number, least, most := rational(value), rational(v.Least), rational(v.Most)
	if number.Cmp(least) < 0 || number.Cmp(most) > 0 {
		return fmt.Sprintf("must be from %s to %s, not %q", v.Least, v.Most, value), true
	}
	return "", true
}

// judgeFloat: mysqld takes more forms of these than the table knows, and another range for some than it tells.
func judgeFloat(value string) (fault string, isJudged bool) {
	switch {
	case !regexp.MustCompile(`^[-+.0-9eE]+$`).MatchString(value):
		return fmt.Sprintf("must be a number, not %q", value), true
	case regexp.MustCompile(`^\d{1,2}(\.\d{1,20})?$`).MatchString(value):
		return "", true
	}
	return "", false
}

// rational reads a number that may have K, M, G, T, P or E after it.
func rational(text string) *big.Rat {
	scale := big.NewInt(1)
	if at := strings.IndexAny(text, "kKmMgGtTpPeE"); at >= 0 {
		scale.Lsh(scale, uint(10*(1+strings.IndexByte("KMGTPE", strings.ToUpper(text)[at]))))
		text = text[:at]
	}
	number, ok := new(big.Rat).SetString(text)
	if !ok {
		return new(big.Rat)
	}
	return number.Mul(number, new(big.Rat).SetInt(scale))
}

// judgeEnum: mysqld takes a value in any case, or its place in the list, and stops at others.
func (v Variable) judgeEnum(value string, isBounded bool) (fault string, isJudged bool) {
	if len(v.Values) == 0 || !isBounded || v.Refused != Free {
		return "", false
	}
	if slices.ContainsFunc(v.Values, func(one string) bool { return strings.EqualFold(one, value) }) {
		return "", true
	}
	if place, err := strconv.Atoi(value); err == nil && place >= 0 && place < len(v.Values) {
		return "", true
	}
	begins := func(one string) bool { return strings.HasPrefix(strings.ToLower(one), strings.ToLower(value)) }
	if value == "" || slices.ContainsFunc(v.Values, begins) {
		return "", false // mysqld takes the beginning of a value, if it is that of one alone
	}
	return fmt.Sprintf("must be one of %s, not %q", strings.Join(v.Values, ", "), value), true
}
