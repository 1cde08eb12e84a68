// Package schema defines everything that a user may write: the table of kinds, the Go types of each kind, and the CustomResourceDefinitions
// that describe them to the API server. Only this package converts between those types and the unstructured objects of the dynamic client.
//
// One folder for each API group and version holds, for each kind, two files that must agree:
//
//	schema/mysql/v1/mysqlcluster.go                                       what the code reads and writes
//	schema/mysql/v1/mysqlclusters.cr.mysqloperator.grtl.github.com.yaml   what the API server checks and explains
//
// The tests of this package compare both files and fail where they differ. This package sends no requests to a cluster.
package schema
