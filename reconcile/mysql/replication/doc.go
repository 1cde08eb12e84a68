// Package replication decides and never acts. From what was observed of a MySQL cluster it decides what must be true next: which member is
// the primary, which replicas may acknowledge commits, and the assignment of each member. Inside a member, it decides the single next step
// towards the assignment. Everything here is a pure function over plain values.
//
// The package makes two decisions, one on top of the other:
//
//	operator:  Record + members observed      → Decide   → the next Record, one Assignment for every member
//	agent:     Assignment + mysqld observed    → NextStep → one verb to speak to mysqld
//
// The Record is the cluster's one record of truth, kept in the status of the MySQLCluster. Its rules:
//
//   - A promise is written down before anything relies on it: a replica joins InSync before it may acknowledge. RequiredAcks goes down in
//     the Record before it goes down on the primary.
//   - A promise is kept before it is written down: RequiredAcks goes up in the Record only after the primary enforces the higher number,
//     and enough replicas hold everything that the primary had when that was observed.
//   - A member leaves InSync only after the primary has locked it out. RequiredAcks is then at most the number of other replicas that are
//     seen to hold everything that the member may have acknowledged.
//   - Before the operator sends an assignment that allows a member more, it makes certain that the Record is still current: see
//     Assignment.Relaxes. See order.go for assignments that arrive late.
//
// Together: every acknowledged transaction is on the primary and on at least RequiredAcks other members of InSync. Reading
// len(InSync)-RequiredAcks of the members other than the primary therefore finds every acknowledged transaction at least once
// (docs/invariants.md).
package replication
