// Package settings knows the settings of mysqld: which release has which, their values, whether a change needs a restart, and which of them
// spec.config must not set. The table is variables.tsv. The definition of MySQLCluster refuses with CEL the settings that the table
// refuses. Tests compare the definition with the table, and the table with a running mysqld.
package settings
