package vmgroup

import (
	"strings"
	"testing"
)

// TestWhomTheOperatorLends: the operator's own account is for its own namespace, and for namespaces named to it.
func TestWhomTheOperatorLends(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		settings Settings
		want     bool
	}{
		"no namespace was named":          {Settings{Namespace: "operators"}, false},
		"the operator's own":              {Settings{Namespace: "shop"}, true},
		"named":                           {Settings{Namespace: "operators", SharedWith: []string{"lab", "shop"}}, true},
		"others were named":               {Settings{Namespace: "operators", SharedWith: []string{"lab"}}, false},
		"all":                             {Settings{Namespace: "operators", SharedWith: []string{"all"}}, true},
		"an operator without a namespace": {Settings{}, false},
	} {
		if lent := test.settings.sharesWith("shop"); lent != test.want {
			t.Errorf("%s: %t", story, lent)
		}
	}
	if (Settings{}).sharesWith("") {
		t.Error("an empty namespace may use the account")
	}
	says := accountNotShared("shop").Message
	for _, words := range []string{"no Secret vc-creds in namespace shop", "--vm-namespaces", "kubectl -n shop create secret generic vc-creds"} {
		if !strings.Contains(says, words) {
			t.Errorf("%q does not say %q", says, words)
		}
	}
}

// TestWhereSecretsMayLead: the operator connects only to listed vCenters, and to nothing else on their hosts.
func TestWhereSecretsMayLead(t *testing.T) {
	t.Parallel()
	listed := Settings{Hosts: []string{"vcenter.example.com", "10.0.0.1:8989"}}
	for host, want := range map[string]bool{
		"vcenter.example.com": true, "VCENTER.example.com:443": true, "https://vcenter.example.com/sdk": true, "https://vcenter.example.com": true, "10.0.0.1:8989": true,
		"10.0.0.1": false, "10.0.0.1:22": false, "vcenter.example.com:6443": false, "https://vcenter.example.com/other": false, "https://vcenter.example.com/sdk?x=y": false,
		"169.254.169.254": false, "vcenter.example.com@evil.example": false, "evil.example/vcenter.example.com": false, "": false, "https://[": false,
	} {
		if reached := listed.mayReach(host); reached != want {
			t.Errorf("%q: %t", host, reached)
		}
	}
	if !(Settings{}).mayReach("anywhere.example") {
		t.Error("without a list the host is refused")
	}
	if says := hostNotAllowed("shop").Message; strings.Contains(says, "example") || !strings.Contains(says, "--vcenter-hosts") {
		t.Errorf("it says %q", says)
	}
}
