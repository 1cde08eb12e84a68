// Package conversion converts custom resources between the versions of their definition. It has converters that lose nothing (Registry),
// the webhook that the API server calls (Handler), and what the webhook needs (Server): certificates that it makes and renews, a Service
// that selects only Pods that know the current definition, and the spec.conversion of the definition.
//
//	registry, err := conversion.NewRegistry("example.com", conversion.Kind{
//		GroupKind: schema.GroupKind{Group: "example.com", Kind: "Widget"},
//		Hub:       "v2",
//		Spokes:    []conversion.Spoke{{Version: "v1", ToHub: conversion.Typed(upgrade), FromHub: conversion.Typed(downgrade)}},
//	})
//	server, err := conversion.NewServer(conversion.Config{Registry: registry, …})
//	go server.Run(ctx)                          // every replica
//	go server.Lead(ctx)                         // only the leader, while it leads: renews certificates
//	joint, err := server.Conversion(ctx)        // the spec.conversion of the definition
//
// See https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion.
//
// Know three things before you add a version. An object that a converter refuses makes every list of its kind fail, so converters must be
// total. The API server does not validate the result of a conversion into the stored version, so converters must make valid objects of
// valid ones. An annotation carries what a version cannot express. A client that replaces an object (PUT) without its annotations drops
// that, as it drops everything else that it does not send. Patches and server-side apply keep it.
package conversion
