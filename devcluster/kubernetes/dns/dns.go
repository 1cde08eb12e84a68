// Package dns is the cluster's DNS server: CoreDNS with only the plugins that its configuration names.
package dns

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	// Plugins register themselves; their order of work is CoreDNS's own.
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

// Run serves DNS with the Corefile given with -conf, until it is stopped.
func Run([]string) error {
	dnsserver.Quiet = true
	coremain.Run()
	return nil
}
