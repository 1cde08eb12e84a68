// Package mysqld holds the verbs that are spoken to mysqld. Every verb is one small method named for what it does; the statement
// behind it stands in it, with the section of the MySQL manual that it relies on.
//
// The statements are those of MySQL 8.0.26 and later, which know source and replica. Where releases differ, the difference
// stands in versions.go and nowhere else.
//
// Values reach a statement only through the driver, which quotes them for utf8mb4, which every connection is set to, and for
// its SQL mode (interpolateParams); nothing here is put together from strings.
package mysqld
