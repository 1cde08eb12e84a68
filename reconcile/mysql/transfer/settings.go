package transfer

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// dataSetting is a setting of mysqld that its data files are made with. Another value cannot start them.
type dataSetting struct {
	name string
	// standard is MySQL's default on Linux.
	standard string
	// meaning is a value in the one spelling that is compared.
	meaning func(value string) string
}

// dataSettings are those that cannot change once a data directory is made: innodb_page_size and lower_case_table_names (manual, "InnoDB
// Startup Options and System Variables", "Identifier Case Sensitivity"), and innodb_data_file_path, the files of the system tablespace,
// which CLONE too wants to be alike on both sides (manual, "Cloning Remote Data"). Where undo and redo logs are is the operator's to say,
// how large and how many they are may change, and every checksum algorithm reads what another one has written.
func dataSettings() []dataSetting {
	return []dataSetting{
		{"innodb_data_file_path", "ibdata1:12M:autoextend", meaningOfFiles},
		{"innodb_page_size", "16384", meaningOfSize},
		{"lower_case_table_names", "0", meaningOfCase},
	}
}

// DataSettings are those of a cluster's spec.config that data files rest on, by MySQL's name for them: what a RestoreOrder has to tell.
func DataSettings(config map[string]string) map[string]string {
	chosen := map[string]string{}
	// In the order of my.cnf, where the last one counts.
	for _, key := range slices.Sorted(maps.Keys(config)) {
		name := strings.TrimPrefix(strings.ReplaceAll(key, "-", "_"), "loose_")
		if slices.ContainsFunc(dataSettings(), func(known dataSetting) bool { return known.name == name }) {
			chosen[name] = config[key]
		}
	}
	return chosen
}

// Misfits are the settings under which a backup's data files cannot be started, with the values that they need. made are those of the
// server that was copied, wanted those of the server that is to start; what is not among these has MySQL's default. What the backup does
// not tell is not asked.
func Misfits(made, wanted map[string]string) []Misfit {
	var found []Misfit
	for _, known := range dataSettings() {
		needs, told := made[known.name]
		has, chosen := wanted[known.name]
		if !chosen {
			has = known.standard
		}
		if told && known.meaning(needs) != known.meaning(has) {
			found = append(found, Misfit{known.name, needs, has})
		}
	}
	return found
}

// Misfit is a setting that a backup's data files need, and the value that the server has.
type Misfit struct{ Name, Needs, Has string }

// plain is a value of my.cnf without the quotes that it may be written in.
func plain(value string) string {
	value = strings.TrimSpace(value)
	for _, quote := range []string{`"`, `'`} {
		if inner, ok := strings.CutPrefix(value, quote); ok && strings.HasSuffix(inner, quote) {
			return strings.TrimSuffix(inner, quote)
		}
	}
	return value
}

// meaningOfSize is a number of bytes, which may be written with K, M or G; anything else is itself.
func meaningOfSize(value string) string {
	value = plain(value)
	digits, shift := value, 0
	for i, unit := range []string{"k", "m", "g"} {
		if rest, ok := strings.CutSuffix(strings.ToLower(value), unit); ok {
			digits, shift = rest, 10*(i+1)
		}
	}
	number, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return value
	}
	return strconv.FormatUint(number<<shift, 10)
}

// meaningOfFiles is a list FILE:SIZE[:autoextend[:max:SIZE]];…, each size in bytes.
func meaningOfFiles(value string) string {
	files := strings.Split(plain(value), ";")
	for i, file := range files {
		fields := strings.Split(strings.TrimSpace(file), ":")
		for j := 1; j < len(fields); j++ {
			fields[j] = meaningOfSize(fields[j])
		}
		files[i] = strings.Join(fields, ":")
	}
	return strings.Join(files, ";")
}

// meaningOfCase: on file systems that tell upper from lower case, which are all that members have, mysqld takes 2 for 0.
func meaningOfCase(value string) string {
	if value = plain(value); value == "2" {
		return "0"
	}
	return value
}
