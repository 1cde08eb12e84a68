// Package clone makes a physical copy of a running mysqld over the network, like the recipient of MySQL's remote clone (manual, "Cloning
// Remote Data"). But it hands the copy to a Sink instead of making a data directory. So the place of the copy needs no second full copy and
// no mysqld.
//
// A copy uses two connections to one donor. The donor sends everything on the first. On the second, the recipient reports the end of each
// stage, because the first has no room for an answer.
//
//	recipient                        donor
//	COM_CLONE, COM_INIT        →           login with BACKUP_ADMIN
//	                           ←     plugins, collations, settings, locator (the copy's identity)
//	COM_EXECUTE                →
//	                           ←     FILE COPY: all files from end to end while they keep changing
//	(second) COM_ACK           →           from here on the redo log is kept
//	                           ←     files created, renamed, dropped since; PAGE COPY: the pages changed since
//	(second) COM_ACK           →           the copy is of this moment
//	                           ←     files created, renamed, dropped since; REDO COPY: the redo log kept
//	(second) COM_ACK           →
//	                           ←     DONE
//	COM_EXIT (both)            →
//
// The layers, each in its own file: packets (packet.go), login (handshake.go) and statements (query.go); the clone plugin's commands and
// responses (protocol.go) with InnoDB's descriptors in them (descriptor.go); their effect on the Sink (recipient.go, ddl.go, page.go); and
// the order of the exchange (copy.go, abort.go). This package skips nothing that it does not know: an unknown descriptor, flag or version
// ends the copy with an error that names it.
package clone
