package settings

import (
	_ "embed" // the table
	"fmt"
	"slices"
	"strings"
)

//go:embed variables.tsv
var variables string

// Type is the type of a setting's value.
type Type string

// The types.
const (
	Bool  Type = "bool"
	Int   Type = "int"
	Float Type = "float"
	Enum  Type = "enum"
	Set   Type = "set"
	Text  Type = "text"
)

// Rule is why spec.config must not set a setting.
type Rule string

// The rules. A setting with a rule may still have allowed values (Variable.Values).
const (
	// Free means that spec.config may set it.
	Free Rule = "-"
	// Identity: it defines which member mysqld is, and where it listens.
	Identity Rule = "identity"
	// Files: it defines where files are, what mysqld loads when it starts, and what it then does.
	Files Rule = "files"
	// Replication: replication, or the safety of acknowledged writes, depends on it.
	Replication Rule = "replication"
	// TLS: the operator issues the certificates.
	TLS Rule = "tls"
	// Durability: acknowledged writes or passwords would be at risk.
	Durability Rule = "durability"
	// Operator: the operator could no longer manage members.
	Operator Rule = "operator"
	// Layout: the layout of data files depends on it, so it cannot change later.
	Layout Rule = "layout"
	// Runtime: mysqld computes it, or a client sets it. It is not a startup setting, so mysqld would not start with it.
	Runtime Rule = "runtime"
)

// Variable is one setting.
type Variable struct {
	Name string
	Type Type
	// Least and Most are the range of a number in MySQL 9.7; empty if unknown.
	Least, Most string
	// Dynamic says that SET GLOBAL changes it. Otherwise a change needs a restart.
	Dynamic bool
	// Refused is why spec.config must not set it; Free if it may.
	Refused Rule
	// Values are those of an enum, or the allowed values of a setting that is otherwise refused. Pattern in it means that the definition
	// decides which are allowed.
	Values   []string
	releases []string
}

// Pattern, in Variable.Values, stands for values that only the definition lists.
const Pattern = "*"

// Table holds the settings by name.
type Table map[string]Variable

// Read reads the table.
func Read() (Table, error) {
	table := Table{}
	for line := range strings.Lines(variables) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		variable, err := parse(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, err
		}
		table[variable.Name] = variable
	}
	return table, nil
}

// none marks an empty column.
const none = "-"

func parse(line string) (Variable, error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 7 {
		return Variable{}, fmt.Errorf("settings of mysqld: %q has %d columns instead of 7", line, len(fields))
	}
	variable := Variable{Name: fields[0], Type: Type(fields[1]), Dynamic: fields[3] == "yes", Refused: Rule(fields[5]), Values: list(fields[6])}
	if fields[2] != none {
		variable.Least, variable.Most, _ = strings.Cut(fields[2], "..")
	}
	if variable.releases = list(fields[4]); fields[4] == "all" {
		variable.releases = described()
	}
	return variable, nil
}

func list(field string) []string {
	if field == none {
		return nil
	}
	return strings.Split(field, ",")
}

// described returns the series of MySQL that the table describes, the oldest first.
func described() []string { return []string{"8.0", "8.4", "9.7", "26.7"} }

// In reports whether a described series has the setting.
func (v Variable) In(series string) bool { return slices.Contains(v.releases, series) }

// Plain returns the canonical name of a setting: with underscores instead of dashes, and without the prefix loose_ (manual, "Using Options
// to Set Program Variables").
func Plain(spelled string) string {
	name := strings.ReplaceAll(spelled, "-", "_")
	for strings.HasPrefix(name, "loose_") {
		name = strings.TrimPrefix(name, "loose_")
	}
	return name
}
