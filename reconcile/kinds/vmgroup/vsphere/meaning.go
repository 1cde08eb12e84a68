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

// meaningOf says what an error of the library means, and what a person can do.
func meaningOf(err error, account vcenter.Account) *vcenter.Error {
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
		return say(vcenter.Untrusted, fmt.Sprintf("the certificate of vCenter %s is for another name (%s): %s", account.Host, said(err), otherName(named.Certificate)))
	case soap.IsCertificateUntrusted(err):
		return say(vcenter.Untrusted, fmt.Sprintf("the certificate of vCenter %s is not to be trusted (%s): put its authority into the key VC_CA of the Secret vc-creds, or VC_INSECURE=true where nobody can listen", account.Host, said(err)))
	case fault.Is(err, &types.InvalidLogin{}):
		return say(vcenter.Refused, fmt.Sprintf("vCenter %s does not let %s in: correct VC_USER and VC_PASS in the Secret vc-creds", account.Host, account.User))
	case isForbidden:
		return say(vcenter.Forbidden, fmt.Sprintf("%s lacks the privilege %s in vCenter %s: grant it", account.User, forbidden.PrivilegeId, account.Host))
	case isGone(err):
		return say(vcenter.Moved, "what was looked at is not there any more")
	case isBusy(err):
		return say(vcenter.Moved, "something else is being done to it: "+said(err))
	}
	if reason, message := placeMeaning(err); reason != "" {
		return say(reason, message)
	}
	if isSOAP(err) {
		return say(vcenter.Failed, "vCenter "+account.Host+" says: "+said(err))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return say(vcenter.Unreachable, fmt.Sprintf("vCenter %s does not answer in time: see whether it is overloaded; the operator goes on asking", account.Host))
	}
	return say(vcenter.Unreachable, fmt.Sprintf("vCenter %s cannot be reached (%s): see whether it runs and VC_HOST is right; the operator goes on asking", account.Host, said(err)))
}

// otherName says what to do about a vCenter that has another name in its certificate.
func otherName(certificate *x509.Certificate) string {
	names := slices.Clone(certificate.DNSNames)
	for _, address := range certificate.IPAddresses {
		names = append(names, address.String())
	}
	if len(names) == 0 {
		return "give the vCenter a certificate with its name in it (subjectAltName), or put VC_INSECURE=true into the Secret vc-creds where nobody can listen"
	}
	return "put the name that the certificate has into the key VC_HOST of the Secret vc-creds: " + strings.Join(names, ", ")
}

// loginMeaning says what an error of logging in means: the account is for a person to correct, or the vCenter cannot be used. Either way
// nobody asks again at once.
func loginMeaning(err error, account vcenter.Account) *vcenter.Error {
	refused := func(format string, arguments ...any) *vcenter.Error {
		return &vcenter.Error{Reason: vcenter.Refused, Message: "vCenter " + account.Host + " does not let " + account.User + " in: " + fmt.Sprintf(format, arguments...)}
	}
	var forbidden *types.NoPermission
	if _, is := fault.As(err, &forbidden); is {
		return refused("it lacks the privilege %s: grant it, or name another account in the Secret vc-creds", forbidden.PrivilegeId)
	}
	if fault.Is(err, &types.PasswordExpired{}) {
		return refused("its password has expired: give it another, there and in VC_PASS of the Secret vc-creds")
	}
	meant := meaningOf(err, account)
	switch meant.Reason {
	case vcenter.Refused, vcenter.Untrusted, vcenter.Unreachable:
		return meant
	case vcenter.Forbidden, vcenter.NoPlace, vcenter.NoTemplate, vcenter.Away, vcenter.Failed, vcenter.Moved, vcenter.Crowded, vcenter.NoHelper:
	}
	return &vcenter.Error{Reason: vcenter.Unreachable, Message: fmt.Sprintf("vCenter %s cannot be used (%s): see whether it is starting or overloaded; the operator goes on asking", account.Host, said(err))}
}

func placeMeaning(err error) (vcenter.Reason, string) {
	var missing *find.NotFoundError
	var several *find.MultipleFoundError
	var noDefault *find.DefaultNotFoundError
	var severalDefaults *find.DefaultMultipleFoundError
	switch {
	case errors.As(err, &missing), errors.As(err, &several):
		return vcenter.NoPlace, said(err)
	case errors.As(err, &noDefault):
		return vcenter.NoPlace, said(err)
	case errors.As(err, &severalDefaults):
		return vcenter.NoPlace, "there are several datacenters: name one in spec.datacenter, or in VC_DATACENTER of the Secret vc-creds"
	}
	return "", ""
}

// isGone says that an object the vCenter was asked about does not exist any more.
func isGone(err error) bool {
	return fault.Is(err, &types.ManagedObjectNotFound{})
}

// isBusy says that something else was at work there at that moment: a snapshot, a move to another host.
func isBusy(err error) bool {
	return fault.Is(err, &types.TaskInProgress{}) || fault.Is(err, &types.ConcurrentAccess{})
}

func isSOAP(err error) bool {
	var told interface{ Fault() types.BaseMethodFault }
	return errors.As(err, &told) || soap.IsSoapFault(err) || soap.IsVimFault(err)
}

// said is an error's innermost text: the library wraps URLs around it, whose ports and times would make a message change for ever.
func said(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return strings.TrimSpace(strings.TrimPrefix(err.Error(), "ServerFaultCode: "))
}
