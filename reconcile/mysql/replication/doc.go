// Package replication decides; it never acts. Given what was observed of a MySQL cluster it says what has to be true next:
// which member is the primary, which replicas may acknowledge commits, what each member is asked to be, and, inside a
// member, which single step leads there. Everything here is a pure function over plain values.
//
// Two decisions live here, one above the other:
//
//	operator:  Record + members observed      → Decide   → the next Record, one Assignment for every member
//	agent:     Assignment + mysqld observed    → NextStep → one verb to speak to mysqld
//
// The Record is the cluster's one record of truth (kept in the MySQLCluster's status). Its rules:
//
//   - A promise is written down before anything relies on it: a replica joins InSync before it may acknowledge, and
//     RequiredAcks goes down in the Record before it goes down on the primary.
//   - A promise is kept before it is written down: RequiredAcks goes up in the Record only after the primary enforces it and
//     enough replicas hold everything the primary had when that was seen.
//   - A member leaves InSync only when it is certain that it cannot acknowledge any more, and RequiredAcks becomes what the others
//     are then seen to hold of everything that it may have acknowledged.
//   - What a member can do by mistake rests on the Record as it is, not as it was: see Assignment.Relaxes, and order.go for what
//     arrives late.
//
// Together: every acknowledged transaction is on the primary and on at least RequiredAcks other members of InSync. Whoever can
// read len(InSync)-RequiredAcks members other than the primary therefore sees every acknowledged transaction at least once
// (docs/invariants.md).
package replication
