// Package clone takes a physical copy of a running mysqld over the network, as the recipient of MySQL's remote clone does (manual,
// "Cloning Remote Data"), but hands it to a Sink instead of making a data directory: no second full copy, and no mysqld, is
// needed where the copy is taken.
//
// A copy is made of two connections to one donor. On the first the donor sends everything; on the second it is told when a
// stage has been received, since the first has no room for an answer.
//
//	recipient                        donor
//	COM_CLONE, COM_INIT        →           login with BACKUP_ADMIN
//	                           ←     plugins, collations, settings, locator (the copy's identity)
//	COM_EXECUTE                →
//	                           ←     FILE COPY: all files from end to end while they go on changing
//	(second) COM_ACK           →           from here on the redo log is kept
//	                           ←     files created, renamed, dropped since; PAGE COPY: the pages changed since
//	(second) COM_ACK           →           here is the moment that the copy is of
//	                           ←     files created, renamed, dropped since; REDO COPY: the redo log kept
//	(second) COM_ACK           →
//	                           ←     DONE
//	COM_EXIT (both)            →
//
// The layers, each in its file: packets (packet.go), login (handshake.go) and statements (query.go); the clone plugin's commands
// and responses (protocol.go) with InnoDB's descriptors in them (descriptor.go); what they do to the Sink (recipient.go, ddl.go,
// page.go); and who says what when (copy.go, abort.go). Nothing unknown is skipped: a descriptor, flag or version that is not
// known ends the copy with an error that names it.
package clone
