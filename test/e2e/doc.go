// Package e2e holds the end-to-end tests: the operator's own image started with kubectl run under its service account, and real MySQL in
// real Pods, on the dev cluster. `make test-e2e` builds and loads what they need. They run on the machine of the dev cluster, whose
// Services and processes they reach directly, so that they can look at MySQL as a client does and kill what a bad day kills.
package e2e
