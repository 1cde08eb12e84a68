// Package objects finds out what an update of a CustomResourceDefinition would do to the existing custom resources.
//
// It reads them page by page. It does to each what the API server would do under the new definition, with the API server's own code
// (k8s.io/apiextensions-apiserver): pruning of unknown fields, dropping of nulls, defaulting, and validation. Validation covers the schema,
// list types, embedded objects, validation rules (CEL) and the numbers of replicas. A loss or refusal counts as harm by the update unless
// it also happens under the existing definition.
//
//	Check    page by page: list → examine → tally
//	examine  one object in each version of the target that it can be read, written or stored in
//	edition  a definition as the API server enforces it, with compiled versions
//
// A client of the API server cannot see three things, so they do not count: fields in etcd that the existing definition already hides;
// whether a value that equals its default was ever written, so that a changed default changes its meaning; objects that a client creates
// between the check and the update.
//
// An object's own metadata is not validated: no definition can change what is valid there, except by schema and rules about its name.
package objects
