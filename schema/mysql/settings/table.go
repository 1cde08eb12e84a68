package settings

import (
	_ "embed" // the table
	"fmt"
	"slices"
	"strings"
)

//go:embed variables.tsv
var variables string

// Type is what the value of a setting is.
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

// The rules. A setting under one of them may have allowed values all the same (Variable.Values).
const (
	// Free is no rule.
	Free Rule = "-"
	// Identity: who a member is, and where it listens.
	Identity Rule = "identity"
	// Files: where files are, what is loaded at a start, and what mysqld then does.
	Files Rule = "files"
	// Replication rests on it, or keeping acknowledged writes does.
	Replication Rule = "replication"
	// TLS: the operator issues the certificates.
	TLS Rule = "tls"
	// Durability: acknowledged writes or passwords would be at risk.
	Durability Rule = "durability"
	// Operator: it could not look after members any more.
	Operator Rule = "operator"
	// Layout: what data files are laid out by, which cannot change later.
	Layout Rule = "layout"
	// Runtime: mysqld computes it, or a client sets it. It is no setting of a start, so mysqld would not start with it.
	Runtime Rule = "runtime"
)

// Variable is one setting.
type Variable struct {
	Name string
	Type Type
	// Least and Most bound a number, as MySQL 9.7 does; empty where they are not known.
	Least, Most string
	// Dynamic says that SET GLOBAL changes it. Without it a change takes a restart.
	Dynamic bool
	// Refused is why spec.config must not set it; Free where it may.
	Refused Rule
	// Values are those of an enum, or those that are allowed of a setting that is refused otherwise. Pattern in it: the definition says which.
	Values   []string
	releases []string
}

// Pattern, in Variable.Values, stands for values that only the definition tells.
const Pattern = "*"

// Table has the settings by name.
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

// none, in a column, stands for nothing.
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

// described are the series of MySQL that the table describes, the oldest first.
func described() []string { return []string{"8.0", "8.4", "9.7", "26.7"} }

// In says whether a described series has the setting.
func (v Variable) In(series string) bool { return slices.Contains(v.releases, series) }

// Plain is a setting's name without what it may be spelled with in a file: dashes, and the prefix loose_ (manual, "Using Options to Set
// Program Variables").
func Plain(spelled string) string {
	name := strings.ReplaceAll(spelled, "-", "_")
	for strings.HasPrefix(name, "loose_") {
		name = strings.TrimPrefix(name, "loose_")
	}
	return name
}
