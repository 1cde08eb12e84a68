package protocol

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// dataSetting is a setting of mysqld with which its data files are created. mysqld cannot start them with another value.
type dataSetting struct {
	name string
	// standard is MySQL's default on Linux.
	standard string
	// meaning normalizes a value for comparison.
	meaning func(value string) string
}

// dataSettings are the settings that cannot change after a data directory is created: innodb_page_size and lower_case_table_names (manual,
// "InnoDB Startup Options and System Variables", "Identifier Case Sensitivity"), and innodb_data_file_path, the files of the system
// tablespace. CLONE, too, requires the same innodb_data_file_path on both sides (manual, "Cloning Remote Data"). The operator decides where
// undo and redo logs are. Their size and number may change, and every checksum algorithm reads what another one has written.
func dataSettings() []dataSetting {
	return []dataSetting{
		{"innodb_data_file_path", "ibdata1:12M:autoextend", meaningOfFiles},
		{"innodb_page_size", "16384", meaningOfSize},
		{"lower_case_table_names", "0", meaningOfCase},
	}
}

// DataSettings returns the settings of a cluster's spec.config on which data files depend, by MySQL's names for them: what a RestoreOrder
// needs.
func DataSettings(config map[string]string) map[string]string {
	chosen := map[string]string{}
	// In the order of my.cnf, in which the last value counts.
	for _, key := range slices.Sorted(maps.Keys(config)) {
		name := strings.TrimPrefix(strings.ReplaceAll(key, "-", "_"), "loose_")
		if slices.ContainsFunc(dataSettings(), func(known dataSetting) bool { return known.name == name }) {
			chosen[name] = config[key]
		}
	}
	return chosen
}

// SettingMismatches returns the settings with which a backup's data files cannot start, and the values that they need. made are the
// settings of the server that was copied. wanted are those of the server that will start; MySQL's defaults apply to all others. A setting
// that the backup does not report is not compared.
func SettingMismatches(made, wanted map[string]string) []SettingMismatch {
	var found []SettingMismatch
	for _, known := range dataSettings() {
		needs, told := made[known.name]
		has, chosen := wanted[known.name]
		if !chosen {
			has = known.standard
		}
		if told && known.meaning(needs) != known.meaning(has) {
			found = append(found, SettingMismatch{known.name, needs, has})
		}
	}
	return found
}

// SettingMismatch is a setting that a backup's data files need, and the value that the server has.
type SettingMismatch struct{ Name, Needs, Has string }

// plain returns a value of my.cnf without its quotes.
func plain(value string) string {
	value = strings.TrimSpace(value)
	for _, quote := range []string{`"`, `'`} {
		if inner, ok := strings.CutPrefix(value, quote); ok && strings.HasSuffix(inner, quote) {
			return strings.TrimSuffix(inner, quote)
		}
	}
	return value
}

// meaningOfSize returns a number of bytes, which may have the suffix K, M or G; it returns anything else unchanged.
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

// meaningOfFiles normalizes a list FILE:SIZE[:autoextend[:max:SIZE]];…, with each size in bytes.
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

// meaningOfCase maps 2 to 0: mysqld does the same on case-sensitive file systems, and members have no others.
func meaningOfCase(value string) string {
	if value = plain(value); value == "2" {
		return "0"
	}
	return value
}
