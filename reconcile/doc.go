// Package reconcile is the engine that every kind runs on. It knows Kubernetes and nothing of any kind: a kind is a Controller, a
// value that says which resource it is, which other resources matter to it, and how to bring one object one step nearer to what its
// spec says (its Reconciler).
//
//	API server ──watch──▶ informers (transformed, indexed by owner)
//	                          │ key of the object concerned
//	                          ▼
//	                      queue (one per kind, one key never twice at once, back-off per key)
//	                          ▼
//	                      a pass:  barrier ▶ Reconcile(copy of the object) ▶ status ▶ events ▶ when to come again
//	                          │                      │
//	                          └──────────────────────┴──▶ Client ──▶ API server (skips writes that would change nothing)
//
// What holds for every kind, so that no kind has to think of it:
//
//   - A pass sees a cache at least as new as the object's own last writes (journal.go).
//   - A write that would change nothing is not sent: a steady state makes no writes at all (apply.go, status.go, events.go).
//   - What another controller owns is never taken over (ForeignError).
//   - A pass that hangs, fails or panics concerns its own object only (controller.go).
//   - Only the leader makes passes; the next leader starts after the last pass of the old one ended (leader.go).
package reconcile
