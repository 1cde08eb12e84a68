package mysqld

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/schema/mysql/settings"
)

const (
	// series is the release series of the mysqld under test.
	series = "9.7"
	// readOnlyVariable is MySQL's error for SET GLOBAL of a variable that only a restart can change (ER_INCORRECT_GLOBAL_LOCAL_VAR).
	readOnlyVariable = 1238
)

func tableOfSettings(t *testing.T) settings.Table {
	t.Helper()
	table, err := settings.Read()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// isElsewhere reports whether a setting belongs to a component that these tests do not load: a cluster engine, or a plugin of the user's.
func isElsewhere(name string) bool {
	return strings.HasPrefix(name, "ndb") || strings.HasPrefix(name, "thread_pool_")
}

// variablesOf reads mysqld's variables: type, least and largest value.
func variablesOf(t *testing.T, server *Server) map[string][3]string {
	t.Helper()
	rows, err := server.db.QueryContext(t.Context(), "SELECT VARIABLE_NAME, DATA_TYPE, MIN_VALUE, MAX_VALUE FROM performance_schema.variables_metadata")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[string][3]string{}
	for rows.Next() {
		var name, kind, least, most string
		if err := rows.Scan(&name, &kind, &least, &most); err != nil {
			t.Fatal(err)
		}
		if !isElsewhere(name) && !strings.Contains(name, ".") {
			found[name] = [3]string{kind, least, most}
		}
	}
	if err := rows.Err(); err != nil || len(found) < 500 {
		t.Fatalf("%d variables (%v)", len(found), err)
	}
	return found
}

// TestTheTableOfSettingsMysqld compares the table of settings with mysqld: names, types, ranges, whether SET GLOBAL works, and values.
func TestTheTableOfSettingsMysqld(t *testing.T) {
	t.Parallel()
	m, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	root := m.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"}, append(withSemiSync(), "--plugin-load-add=mysql_clone.so")...)
	table, found := tableOfSettings(t), variablesOf(t, root)
	help, err := m.command(t.Context(), "--verbose", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	options := map[string]bool{}
	for _, option := range regexp.MustCompile(`(?m)^ {1,5}(?:-., )?--([a-z][a-z0-9-]*)`).FindAllStringSubmatch(string(help), -1) {
		options[settings.Plain(option[1])] = true
	}
	for name, variable := range table {
		if _, isVariable := found[name]; variable.In(series) != (isVariable || options[name]) {
			t.Errorf("%s is in MySQL %s: the table says %t", name, series, variable.In(series))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		holdAgainst(t, root, table[name], name, found[name])
	}
}

func holdAgainst(t *testing.T, root *Server, variable settings.Variable, name string, of [3]string) {
	t.Helper()
	if variable.Name == "" {
		t.Errorf("%s is missing in the table", name)
		return
	}
	kind := map[string]settings.Type{
		"Boolean": settings.Bool, "Integer": settings.Int, "Numeric": settings.Float, "Enumeration": settings.Enum, "Set": settings.Set, "String": settings.Text,
	}[of[0]]
	if variable.Type != kind && (kind != settings.Text || variable.Type != settings.Enum) {
		t.Errorf("%s is %s, and %s in the table", name, of[0], variable.Type)
	}
	if variable.Least != "" && (variable.Least != of[1] || variable.Most != of[2]) {
		t.Errorf("%s is from %s to %s, and from %s to %s in the table", name, of[1], of[2], variable.Least, variable.Most)
	}
	_, err := root.db.ExecContext(t.Context(), fmt.Sprintf("SET GLOBAL %[1]s = @@GLOBAL.%[1]s", name))
	var refused *driver.MySQLError
	if isReadOnly := errors.As(err, &refused) && refused.Number == readOnlyVariable; isReadOnly == variable.Dynamic {
		t.Errorf("SET GLOBAL %s: %v; it is dynamic in the table: %t", name, err, variable.Dynamic)
	}
}

// takes reports whether a mysqld that is not started accepts settings.
func (m *mysqld) takes(t *testing.T, text string) (bool, string) {
	t.Helper()
	file := m.file("judged.cnf")
	if err := os.WriteFile(file, []byte("[mysqld]\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := m.command(t.Context(), "--secure-file-priv=NULL", "--validate-config")
	for at, argument := range command.Args {
		if argument == "--no-defaults" {
			command.Args[at] = "--defaults-file=" + file
		}
	}
	said, err := command.CombinedOutput()
	return err == nil, string(said)
}

// TestValuesOfSettingsMysqld: mysqld accepts every value of an enum that the table has.
func TestValuesOfSettingsMysqld(t *testing.T) {
	t.Parallel()
	m, table, longest := newMysqld(t, writeCertificates(t)), tableOfSettings(t), 1
	for at := 0; at < longest; at++ {
		var text strings.Builder
		for _, name := range slices.Sorted(maps.Keys(table)) {
			variable := table[name]
			if variable.Refused != settings.Free || !variable.In(series) || len(variable.Values) == 0 {
				continue
			}
			longest = max(longest, len(variable.Values))
			fmt.Fprintf(&text, "%s = %s\n", name, variable.Values[min(at, len(variable.Values)-1)])
		}
		if ok, said := m.takes(t, text.String()); !ok {
			t.Errorf("mysqld does not accept\n%s%s", text.String(), said)
		}
	}
	if longest < 3 {
		t.Error("no values were tried")
	}
}

// TestJudgementsOfSettingsMysqld: mysqld accepts the settings that the table vouches for, and does not start with those that the table
// calls faults.
func TestJudgementsOfSettingsMysqld(t *testing.T) {
	t.Parallel()
	m, b := newMysqld(t, writeCertificates(t)), bootstrap("root's")
	root := m.start(t, sqlOf(t, b), Account{User: "root", Password: "root's"})
	table, config := tableOfSettings(t), map[string]string{}
	for name := range variablesOf(t, root) {
		var value string
		if err := root.db.QueryRowContext(t.Context(), "SELECT VARIABLE_VALUE FROM performance_schema.global_variables WHERE VARIABLE_NAME = ?", name).Scan(&value); err == nil && value != "" {
			config[name] = value
		}
	}
	judged := table.Judge(config, "9.7.4")
	var vouched strings.Builder
	for _, name := range slices.Sorted(maps.Keys(config)) {
		isFault := slices.ContainsFunc(judged.Faults, func(fault string) bool { return strings.HasPrefix(fault, name+" ") })
		switch {
		case isFault && table[name].Refused == settings.Runtime:
			if ok, _ := m.takes(t, name+" = "+config[name]+"\n"); ok {
				t.Errorf("mysqld accepts %s at a start", name)
			}
		case isFault:
			t.Errorf("%s = %s, which mysqld has, is called a fault", name, config[name])
		case table[name].Refused == settings.Free:
			fmt.Fprintf(&vouched, "%s = %s\n", name, config[name])
		}
	}
	if ok, said := m.takes(t, vouched.String()); !ok {
		t.Errorf("mysqld does not accept its own values:\n%s", said)
	}
	for _, wrong := range []string{"max_connections = five", "transaction_isolation = no", "innodb_flush_neighbors = x", "innodb_log_file_size = 48M"} {
		name, value, _ := strings.Cut(wrong, " = ")
		if ok, _ := m.takes(t, wrong+"\n"); ok || len(table.Judge(map[string]string{name: value}, "9.7.4").Faults) != 1 {
			t.Errorf("mysqld accepts %s, or the table does not call it a fault", wrong)
		}
	}
}
