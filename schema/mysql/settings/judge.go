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

// Judgement is the result of a check of settings against the table.
type Judgement struct {
	// Faults say with which settings mysqld would not start, or which it would change, and why.
	Faults []string
	// Unsure are the settings that only mysqld itself can judge: the table does not have the name, the release, or the possible values.
	Unsure []string
}

// Judge checks settings for a release of MySQL, such as 9.7.4; empty means an unknown release. The results are in a fixed order.
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

// unquoted returns a value without the quotation marks around it. mysqld removes them, too (manual, "Using Option Files").
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
		return "", false // mysqld logs a warning, and ignores it
	case variable.Refused == Runtime:
		return "is not a setting that mysqld reads when it starts: remove it", false
	}
	has, sure := variable.isIn(release)
	if sure && !has {
		return notIn(release, isLoose), false
	}
	fault, isJudged := variable.judgeValue(value, release.isBounded())
	return fault, fault == "" && (!sure || !isJudged)
}

// notIn returns the fault of a setting that a release does not have. mysqld ignores one that begins with loose_.
func notIn(release release, isLoose bool) string {
	if isLoose {
		return ""
	}
	return fmt.Sprintf("is not a setting of MySQL %s: remove it", release.version)
}

// isPrefixed reports whether mysqld reads a name as another setting with a prefix, such as skip_external_locking (manual, "Program Option
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
	// series is the series that describes the release; empty if none does. since says that the release is not older than the oldest
	// described series, and not newer than the newest. So it has every setting that all of them have.
	series string
	since  bool
}

// firstDescribedPatch returns the first patch release of a series that the table certainly describes.
func firstDescribedPatch(series string) int {
	return map[string]int{"8.0": 41, "8.4": 6, "9.7": 4, "26.7": 0}[series]
}

func releaseOf(version string) release {
	found := regexp.MustCompile(`^(\d{1,3})\.(\d{1,3})\.(\d{1,4})`).FindStringSubmatch(version)
	if found == nil {
		return release{}
	}
	number := func(at int) int {
		parsed, _ := strconv.Atoi(found[at]) // a few digits always parse
		return parsed
	}
	major, minor, patch := number(1), number(2), number(3)
	told := release{version: found[0], since: isBetween(major, minor, patch)}
	if series := fmt.Sprintf("%d.%d", major, minor); slices.Contains(described(), series) && patch >= firstDescribedPatch(series) {
		told.series = series
	}
	return told
}

// isBetween reports whether a release is from 8.0.41 to 26.7.
func isBetween(major, minor, patch int) bool {
	isLateEnough := major > 8 || major == 8 && (minor > 0 || patch >= firstDescribedPatch("8.0"))
	return isLateEnough && (major < 26 || major == 26 && minor <= 7)
}

// isBounded reports whether the release has the ranges and enum values of the table.
func (r release) isBounded() bool { return r.series == "9.7" || r.series == "26.7" }

// isIn reports whether a release has the setting, and whether this is certain.
func (v Variable) isIn(r release) (has, sure bool) {
	switch {
	case r.series != "":
		return v.In(r.series), true
	case len(v.releases) == len(described()):
		return true, r.since
	}
	return false, false
}

// judgeValue returns the fault of a value, and whether the table could judge it.
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

// judgeBool accepts ON and OFF. mysqld reads any other value as OFF, with a warning (MySQL source, mysys/my_getopt.cc, get_bool_argument).
func judgeBool(value string) (fault string, isJudged bool) {
	if value == "" {
		return "", false
	}
	if slices.Contains([]string{"on", "off", "true", "false", "0", "1"}, strings.ToLower(value)) {
		return "", true
	}
	return fmt.Sprintf("must be ON or OFF, not %q", value), true
}

// judgeNumber accepts numbers in the range. mysqld does not start with another text, and changes a number out of range, with a warning.
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

// judgeFloat judges few forms only. mysqld accepts more forms than the table knows, and for some settings another range than it reports.
func judgeFloat(value string) (fault string, isJudged bool) {
	switch {
	case !regexp.MustCompile(`^[-+.0-9eE]+$`).MatchString(value):
		return fmt.Sprintf("must be a number, not %q", value), true
	case regexp.MustCompile(`^\d{1,2}(\.\d{1,20})?$`).MatchString(value):
		return "", true
	}
	return "", false
}

// rational parses a number with an optional suffix K, M, G, T, P or E.
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

// judgeEnum accepts a value in any letter case, or its index in the list. mysqld does not start with others.
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
		return "", false // mysqld accepts a prefix of a value, if only one value has it
	}
	return fmt.Sprintf("must be one of %s, not %q", strings.Join(v.Values, ", "), value), true
}
