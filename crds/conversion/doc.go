// Package conversion converts custom resources between the versions of their definition: converters that lose nothing (Registry), the
// webhook that the API server calls (Handler), and all that is around it (Server): certificates that it makes and renews itself, a
// Service that leads only to Pods that know the current definition, and the spec.conversion of the definition.
//
//	registry, err := conversion.NewRegistry("example.com", conversion.Kind{
//		GroupKind: schema.GroupKind{Group: "example.com", Kind: "Widget"},
//		Hub:       "v2",
//		Spokes:    []conversion.Spoke{{Version: "v1", ToHub: conversion.Typed(upgrade), FromHub: conversion.Typed(downgrade)}},
//	})
//	server, err := conversion.NewServer(conversion.Config{Registry: registry, …})
//	go server.Run(ctx)                          // every replica
//	go server.Lead(ctx)                         // the leader, while it is one: renews certificates
//	joint, err := server.Conversion(ctx)        // goes into spec.conversion of the definition
//
// See https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion.
//
// Three things to know before a version is added. An object that a converter refuses makes every list of its kind fail, so converters
// are total. Nothing validates what comes out of a conversion into the stored version: converters make valid objects of valid ones.
// And what a version cannot express travels in an annotation, so a client that replaces an object (PUT) without its annotations
// drops that, as it drops everything else it does not send; patches and server-side apply do not.
package conversion
