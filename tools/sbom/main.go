// sbom writes a bill of materials (CycloneDX, JSON) of Go binaries: the modules that are linked into them, with the checksums of go.sum,
// as Go itself recorded them in the binaries. It needs neither the source nor a network.
//
// Usage: go run ./sbom VERSION BINARY... >sbom.json
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION BINARY...")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write writes the bill of all binaries together.
func write(out io.Writer, version string, binaries []string) error {
	bill := cyclonedx.NewBOM()
	linked, parts := map[string]cyclonedx.Component{}, []cyclonedx.Component{}
	for _, path := range binaries {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read what Go recorded in %s: %w", path, err)
		}
		parts = append(parts, cyclonedx.Component{Type: cyclonedx.ComponentTypeApplication, Name: filepath.Base(path), Version: version})
		linked["std"] = cyclonedx.Component{
			Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion,
			PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"), BOMRef: "std",
		}
		for _, module := range info.Deps {
			one := component(module)
			linked[one.BOMRef] = one
		}
	}
	bill.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		Type: cyclonedx.ComponentTypeContainer, Name: "mysql-operator", Version: version, Components: &parts,
	}}
	libraries := slices.SortedFunc(maps.Values(linked), func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	bill.Components = &libraries
	return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
}

// component describes a module, or what replaces it.
func component(module *debug.Module) cyclonedx.Component {
	if module.Replace != nil {
		module = module.Replace
	}
	url := "pkg:golang/" + module.Path + "@" + module.Version
	made := cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, PackageURL: url, BOMRef: url}
	// go.sum's form: "h1:" and the SHA-256 of the module's file list in base64.
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:")); err == nil && len(sum) > 0 {
		made.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return made
}
