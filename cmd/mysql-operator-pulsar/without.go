//go:build without_pulsar

// Command mysql-operator-pulsar, built without the client library for Apache Pulsar, only reports that and ends.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "mysql-operator: this image was built without the client library for Apache Pulsar "+
		"(Go module github.com/apache/pulsar-client-go); use an image with it")
	os.Exit(1) //nolint:forbidigo // main ends the process
}
