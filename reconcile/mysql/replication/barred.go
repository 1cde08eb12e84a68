package replication

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Account is an account in mysql.user and the plugin that authenticates it.
type Account struct {
	User   string `json:"user"`
	Host   string `json:"host"`
	Plugin string `json:"plugin"`
}

// Accounts are accounts of a server: some by name, and the number of further ones. The zero value is none.
type Accounts struct {
	Named []Account `json:"named,omitempty"`
	More  int       `json:"more,omitempty"`
}

// Empty reports whether there are no accounts.
func (a Accounts) Empty() bool { return len(a.Named) == 0 && a.More <= 0 }

// Without returns the accounts without those that others names. Accounts that are only counted stay. But the result is empty if others
// names all named accounts and counts at least as many.
func (a Accounts) Without(others Accounts) Accounts {
	left := Accounts{More: a.More}
	isNamed := func(account Account) bool { return slices.Contains(others.Named, account) }
	if a.More <= others.More && !slices.ContainsFunc(a.Named, func(account Account) bool { return !isNamed(account) }) {
		return Accounts{}
	}
	for _, account := range a.Named {
		if !isNamed(account) {
			left.Named = append(left.Named, account)
		}
	}
	return left
}

// longestAccounts limits the names in a text, in bytes: a host name alone may have 255.
const longestAccounts = 400

// String formats the accounts for users. Names are quoted, because every account that may create accounts chooses them.
func (a Accounts) String() string {
	var text strings.Builder
	left := a.More
	for _, account := range a.Named {
		one := fmt.Sprintf("%q@%q (%q)", account.User, account.Host, account.Plugin)
		if text.Len()+len(one) > longestAccounts {
			left++
			continue
		}
		if text.Len() > 0 {
			text.WriteString(", ")
		}
		text.WriteString(one)
	}
	switch {
	case text.Len() == 0:
		fmt.Fprintf(&text, "%d accounts", left)
	case left > 0:
		fmt.Fprintf(&text, " and %d more", left)
	}
	return text.String()
}

// Series returns the release series of a version, "8.4" for "8.4.6-log"; empty if the text is not a version. Within a series, a server
// opens the data of another release and accepts the same accounts (manual, "MySQL Releases: Innovation and LTS").
func Series(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 || !isNumber(parts[0]) || !isNumber(parts[1]) {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// IsOlderSeries reports whether a release of MySQL is of an older series than another, whose data it cannot open (manual, "Downgrading
// MySQL"). It returns false if either is unknown.
func IsOlderSeries(version, than string) bool {
	one, other := strings.Split(Series(version), "."), strings.Split(Series(than), ".")
	if len(one) < 2 || len(other) < 2 {
		return false
	}
	return cmp.Or(compareNumbers(one[0], other[0]), compareNumbers(one[1], other[1])) < 0
}

// compareNumbers compares two numbers without leading zeros.
func compareNumbers(one, other string) int {
	return cmp.Or(cmp.Compare(len(one), len(other)), cmp.Compare(one, other))
}

// isNumber reports whether a part of a version is a number. No release has had a part of more than four digits.
func isNumber(text string) bool {
	return text != "" && len(text) <= 4 && strings.Trim(text, "0123456789") == ""
}
