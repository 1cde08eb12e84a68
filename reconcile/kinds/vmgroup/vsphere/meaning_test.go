//go:build !without_vcenter

package vsphere

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

// TestACertificateOfAnotherName: another CA certificate would not help.
func TestACertificateOfAnotherName(t *testing.T) {
	t.Parallel()
	account := vcenter.Account{Host: "10.0.0.1", User: "u"}
	wrapped := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://10.0.0.1/sdk", Err: fmt.Errorf("tls: %w", err)}
	}
	for story, test := range map[string]struct {
		err        error
		words, not string
	}{
		"a name":       {x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"vc.example.com"}}, Host: "10.0.0.1"}, "into the key VC_HOST of the Secret vc-creds: vc.example.com", "VC_CA"},
		"an address":   {x509.HostnameError{Certificate: &x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 0, 0, 2)}}, Host: "10.0.0.1"}, "into the key VC_HOST of the Secret vc-creds: 10.0.0.2", "VC_CA"},
		"no name":      {x509.HostnameError{Certificate: &x509.Certificate{}, Host: "vc"}, "give the vCenter a certificate with its name in it", "VC_HOST"},
		"no authority": {x509.UnknownAuthorityError{}, "put its CA certificate into the key VC_CA", "VC_HOST"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			var known *vcenter.Error
			if !errors.As(loginErrorFor(wrapped(test.err), account), &known) || known.Reason != vcenter.Untrusted || !strings.Contains(known.Message, test.words) || strings.Contains(known.Message, test.not) {
				t.Errorf("it says %v", known)
			}
		})
	}
}
