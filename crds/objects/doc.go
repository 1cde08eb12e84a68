// Package objects finds out what an update of a CustomResourceDefinition would do to the custom resources that exist.
//
// It reads them page by page and puts each through what the API server would put it through under the definition to come, with the API
// server's own code (k8s.io/apiextensions-apiserver): pruning of unknown fields, dropping of nulls, defaulting, validation by schema, by
// list type, of embedded objects, by validation rules (CEL) and of the numbers of replicas. What is lost or refused then, and was not
// under the definition that exists, would be harm done by the update.
//
//	Check    page by page: list → examine → tally
//	examine  one object under each version of the target it can be read, written or stored in
//	edition  a definition as the API server enforces it: one compiled version each
//
// Three things cannot be seen from outside, and are not counted: fields in etcd that the existing definition hides already; whether a
// value that equals its default was ever written down, so that a changed default changes its meaning; objects that somebody creates
// between the check and the update.
//
// An object's own metadata is not validated: no definition can change what is valid there, but by schema and rules about its name.
package objects
