// Package mysqld holds the verbs that change or observe a mysqld. Every verb is one small method named for what it does. The method
// contains its statement and names the section of the MySQL manual that it relies on.
//
// The statements are those of MySQL 8.0.26 and later, which use the words source and replica. Where releases differ, versions.go has the
// difference.
//
// Values reach a statement only through the driver (interpolateParams). The driver quotes them for utf8mb4 and for its SQL mode, to which
// every connection is set. Nothing here concatenates values into statements, except names of events and of their definers (quoteName).
package mysqld
