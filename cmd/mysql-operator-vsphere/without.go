//go:build without_vcenter

// Command mysql-operator-vsphere, built without the client library for vCenters, only reports that and ends. The operator shows the message
// in the VmGroup's status.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "mysql-operator-vsphere: this image was built without the client library for vCenters "+
		"(Go module github.com/vmware/govmomi); use an image with it")
	os.Exit(1) //nolint:forbidigo // main ends the process
}
