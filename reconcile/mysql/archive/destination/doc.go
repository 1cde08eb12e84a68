// Package destination is what a destination's URL and Secret say, without a connection to the store: which folder, where credentials may
// go, and what went wrong. Package archive connects to the store. What needs no connection imports this package alone, and is not linked
// with the SDKs.
package destination
