// Package clone takes a physical copy of a running mysqld over the network, as the recipient of MySQL's remote clone does (manual,
// "Cloning Remote Data"), but hands it to a Sink instead of making a data directory: no second full copy, and no mysqld, is
// needed where the copy is taken.
package clone
