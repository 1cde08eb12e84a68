// Package binlog reads the last binary log of a mysqld that was killed, and finds the end of it that no other server has.
//
// A primary with semi-sync replication and AFTER_SYNC writes a transaction to its binary log and then waits for an acknowledgement.
// Until it comes, InnoDB has the transaction only prepared. If mysqld is killed meanwhile, recovery commits the transaction, because its
// events are in the log. If an agent removes the events before the start, recovery rolls the transaction back (manual, "The Binary Log").
//
// ReadTail decides where such a tail begins. It never writes. It refuses, with an error, whatever it does not understand completely:
// a wrong answer would corrupt data, and a refusal costs only a copy of another member.
//
// The tail may consist only of transactions that recovery can roll back. Each is a GTID, BEGIN, changes of rows, and the XID of an engine
// commit. Or it is empty: a GTID, BEGIN and COMMIT. DDL, XA transactions, statements, compressed transactions and changes of
// non-transactional tables are allowed before the tail.
//
// A killed mysqld can leave the beginning of an event at the end of the file. Recovery removes it, together with the transaction that it
// belongs to. Such a rest counts as part of the tail.
//
// The layers, each in its own file: events and their checksums (event.go); what the head of a file says (head.go); the shape of one
// transaction (shape.go); transaction numbers (numbers.go); and the order of transactions (walk.go, tail.go).
package binlog
