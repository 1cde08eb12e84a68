//go:build !without_vcenter

package vsphere

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

// errorFor returns what an error of the library means, and what a user can do.
func errorFor(err error, account vcenter.Account) *vcenter.Error {
	if known, is := errors.AsType[*vcenter.Error](err); is {
		return &vcenter.Error{Reason: known.Reason, Message: known.Message}
	}
	say := func(reason vcenter.Reason, message string) *vcenter.Error {
		return &vcenter.Error{Reason: reason, Message: message}
	}
	var forbidden *types.NoPermission
	_, isForbidden := fault.As(err, &forbidden)
	named, isNamed := errors.AsType[x509.HostnameError](err)
	switch {
	case isNamed:
		return say(vcenter.Untrusted, fmt.Sprintf("the certificate of vCenter %s is for another name (%s): %s", account.Host, innermostText(err), otherName(named.Certificate)))
	case soap.IsCertificateUntrusted(err):
		return say(vcenter.Untrusted, fmt.Sprintf("the certificate of vCenter %s is not trusted (%s): put its CA certificate into the key VC_CA of the Secret vc-creds, or VC_INSECURE=true if no attacker can reach the network", account.Host, innermostText(err)))
	case fault.Is(err, &types.InvalidLogin{}):
		return say(vcenter.LoginRefused, fmt.Sprintf("vCenter %s refuses the login of %s: correct VC_USER and VC_PASS in the Secret vc-creds", account.Host, account.User))
	case isForbidden:
		return say(vcenter.Forbidden, fmt.Sprintf("account %s is missing the privilege %s in vCenter %s: grant it", account.User, forbidden.PrivilegeId, account.Host))
	case isGone(err):
		return say(vcenter.Moved, "the object no longer exists")
	case isBusy(err):
		return say(vcenter.Moved, "another task is running on it: "+innermostText(err))
	}
	if reason, message := placeMeaning(err); reason != "" {
		return say(reason, message)
	}
	if isSOAP(err) {
		return say(vcenter.Failed, "vCenter "+account.Host+" says: "+innermostText(err))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return say(vcenter.Unreachable, fmt.Sprintf("vCenter %s does not answer in time: check whether it is overloaded; the operator retries", account.Host))
	}
	return say(vcenter.Unreachable, fmt.Sprintf("vCenter %s cannot be reached (%s): check whether it runs and VC_HOST is correct; the operator retries", account.Host, innermostText(err)))
}

// otherName returns what a user can do if the vCenter's certificate is for another name.
func otherName(certificate *x509.Certificate) string {
	names := slices.Clone(certificate.DNSNames)
	for _, address := range certificate.IPAddresses {
		names = append(names, address.String())
	}
	if len(names) == 0 {
		return "give the vCenter a certificate with its name in it (subjectAltName), or put VC_INSECURE=true into the Secret vc-creds if no attacker can reach the network"
	}
	return "put the name that the certificate has into the key VC_HOST of the Secret vc-creds: " + strings.Join(names, ", ")
}

// loginErrorFor returns what an error of logging in means: a user must correct the account, or the vCenter cannot be used. In both cases
// there is a pause before the next login.
func loginErrorFor(err error, account vcenter.Account) *vcenter.Error {
	refused := func(format string, arguments ...any) *vcenter.Error {
		return &vcenter.Error{Reason: vcenter.LoginRefused, Message: "vCenter " + account.Host + " refuses the login of " + account.User + ": " + fmt.Sprintf(format, arguments...)}
	}
	var forbidden *types.NoPermission
	if _, is := fault.As(err, &forbidden); is {
		return refused("the account is missing the privilege %s: grant it, or name another account in the Secret vc-creds", forbidden.PrivilegeId)
	}
	if fault.Is(err, &types.PasswordExpired{}) {
		return refused("the password has expired: change it in the vCenter and in VC_PASS of the Secret vc-creds")
	}
	meant := errorFor(err, account)
	switch meant.Reason {
	case vcenter.LoginRefused, vcenter.Untrusted, vcenter.Unreachable:
		return meant
	case vcenter.Forbidden, vcenter.NoPlace, vcenter.NoTemplate, vcenter.MachineMoved, vcenter.Failed, vcenter.Moved, vcenter.TooManyAccounts, vcenter.HelperNotRunning:
	}
	return &vcenter.Error{Reason: vcenter.Unreachable, Message: fmt.Sprintf("vCenter %s cannot be used (%s): check whether it is starting or overloaded; the operator retries", account.Host, innermostText(err))}
}

func placeMeaning(err error) (vcenter.Reason, string) {
	var missing *find.NotFoundError
	var several *find.MultipleFoundError
	var noDefault *find.DefaultNotFoundError
	var severalDefaults *find.DefaultMultipleFoundError
	switch {
	case errors.As(err, &missing), errors.As(err, &several):
		return vcenter.NoPlace, innermostText(err)
	case errors.As(err, &noDefault):
		return vcenter.NoPlace, innermostText(err)
	case errors.As(err, &severalDefaults):
		return vcenter.NoPlace, "there are several datacenters: name one in spec.datacenter, or in VC_DATACENTER of the Secret vc-creds"
	}
	return "", ""
}

// isGone reports whether the vCenter no longer has an object that it was asked about.
func isGone(err error) bool {
	return fault.Is(err, &types.ManagedObjectNotFound{})
}

// isBusy reports whether another task ran there at that moment: a snapshot, or a move to another host.
func isBusy(err error) bool {
	return fault.Is(err, &types.TaskInProgress{}) || fault.Is(err, &types.ConcurrentAccess{})
}

func isSOAP(err error) bool {
	var told interface{ Fault() types.BaseMethodFault }
	return errors.As(err, &told) || soap.IsSoapFault(err) || soap.IsVimFault(err)
}

// innermostText returns an error's innermost text. The library puts URLs around it, and their ports and times would change a message each
// time.
func innermostText(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return strings.TrimSpace(strings.TrimPrefix(err.Error(), "ServerFaultCode: "))
}
