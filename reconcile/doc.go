// Package reconcile is the engine that every kind runs on. It knows Kubernetes, and it knows no kind. A kind is a Controller, a value with
// its resource, the other resources that it watches, and its Reconciler. A Reconciler brings one object one step nearer to its spec.
//
//	API server ──watch──▶ informers (transformed, indexed by owner)
//	                          │ key of the object concerned
//	                          ▼
//	                      queue (one per kind, one key never twice at once, back-off per key)
//	                          ▼
//	                      a pass:  barrier ▶ Reconcile(copy of the object) ▶ status ▶ events ▶ requeue time
//	                          │                      │
//	                          └──────────────────────┴──▶ Client ──▶ API server (skips writes that would change nothing)
//
// The engine guarantees for every kind:
//
//   - A pass sees caches that include the object's own last writes (journal.go).
//   - The engine does not send a write that would change nothing: in a steady state it writes nothing (apply.go, status.go, events.go).
//   - The engine never takes over what another controller owns (ForeignError).
//   - A pass that hangs, fails or panics affects only its own object (controller.go).
//   - Only the leader makes passes; the next one starts after the last pass of the old one ended, unless that one has failed (leader.go).
package reconcile
