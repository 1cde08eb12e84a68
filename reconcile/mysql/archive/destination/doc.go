// Package destination reads a destination's URL and Secret, without a connection to the store: which folder is used, where credentials may
// be sent, and what kind of error occurred. Package archive connects to the store. Code that needs no connection imports only this package,
// and so does not link the SDKs.
package destination
