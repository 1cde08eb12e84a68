// Package settings knows the settings of mysqld: which there are in which release, what each may be, whether a change takes a restart, and
// which of them spec.config must not set. The table is variables.tsv. The definition of MySQLCluster refuses with CEL what the table
// refuses, and tests hold the two against each other, and the table against a running mysqld.
package settings
