// Package schema is everything a user may write: the table of kinds, the Go types of each kind, the
// CustomResourceDefinitions that describe them to the API server, and the one door between the unstructured
// objects of the dynamic client and those types.
//
// One folder per API group and version holds, for each kind, two files that must say the same:
//
//	schema/mysql/v1/mysqlcluster.go                                       what the code reads and writes
//	schema/mysql/v1/mysqlclusters.cr.mysqloperator.grtl.github.com.yaml   what the API server checks and explains
//
// The tests of this package walk both and fail where they differ. Nothing here talks to a cluster.
package schema
