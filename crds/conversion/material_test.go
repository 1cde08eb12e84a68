package conversion

import (
	"crypto/x509"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const day = 24 * time.Hour

// TestYears follows the certificates for eleven years: what the leader does, day after day, and that no step but the first breaks
// connections.
func TestYears(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hosts := []string{"conversion.operators.svc", "10.0.0.1"}
	var held *material
	taken := []string{}
	for today := range 11 * 365 {
		at := now.Add(time.Duration(today) * day)
		view := situation{material: held, remembered: held, hosts: hosts, leads: true, trusted: today%7 == 0, overlap: time.Hour}
		next := view.nextStep(at)
		if next == stepKeep {
			continue
		}
		made, err := view.take(next, at)
		if err != nil {
			t.Fatal(err)
		}
		if made, err = readMaterial(made.data()); err != nil {
			t.Fatalf("day %d, %s: what was made cannot be read: %v", today, next, err)
		}
		if !made.serves(hosts, at) {
			t.Errorf("day %d, %s: the served certificate is not valid", today, next)
		}
		if held != nil && !trusts(held, made) {
			t.Errorf("day %d, %s: a client that trusts the former bundle does not trust the served certificate", today, next)
		}
		if held != nil && len(taken) < 40 && next != stepServe {
			taken = append(taken, string(next))
		}
		held = made
	}
	want := []string{string(stepAuthority), string(stepForget)}
	if diff := cmp.Diff(want, taken); diff != "" {
		t.Errorf("in addition to renewals of the certificate, in eleven years (-want +got):\n%s", diff)
	}
}

func trusts(former, made *material) bool {
	for _, authority := range former.authorities {
		if made.serving.Leaf.CheckSignatureFrom(authority) == nil {
			return true
		}
	}
	return false
}

func start(t *testing.T, hosts []string, at time.Time) *material {
	t.Helper()
	made, err := situation{hosts: hosts}.take(stepStart, at)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestNextStep(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hosts := []string{"conversion.operators.svc"}
	first := start(t, hosts, now)
	rotating, err := situation{material: first, hosts: hosts}.take(stepAuthority, now.Add(day))
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := situation{material: rotating, hosts: hosts}.take(stepServe, now.Add(2*day))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		situation situation
		after     time.Duration
		want      step
	}{
		"there is no Secret": {situation{}, 0, stepStart},
		"the Secret is lost, the served certificate is known": {situation{remembered: first}, day, stepAuthority},
		"it is lost, and the served certificate has expired":  {situation{remembered: first}, 366 * day, stepStart},
		"all is well": {situation{material: first, leads: true, trusted: true}, day, stepKeep},
		"a third of the certificate's life is left":        {situation{material: first, leads: true, trusted: true}, 245 * day, stepServe},
		"the same, seen by a follower":                     {situation{material: first}, 245 * day, stepKeep},
		"it has expired, which even a follower fixes":      {situation{material: first}, 366 * day, stepServe},
		"it is for another name":                           {situation{material: first, hosts: []string{"else.svc"}}, day, stepServe},
		"a third of the CA's life is left":                 {situation{material: first, leads: true, trusted: true}, 7 * 365 * day, stepServe},
		"the CA has expired":                               {situation{material: first}, 3650 * day, stepStart},
		"a new CA is not trusted yet":                      {situation{material: rotating, leads: true}, 2 * day, stepKeep},
		"a new CA is trusted":                              {situation{material: rotating, leads: true, trusted: true}, 2 * day, stepServe},
		"a new CA is trusted, seen by a follower":          {situation{material: rotating, trusted: true}, 2 * day, stepKeep},
		"some replica may still serve the old certificate": {situation{material: rotated, leads: true, trusted: true, overlap: time.Hour}, 2*day + time.Minute, stepKeep},
		"every replica serves the new certificate":         {situation{material: rotated, leads: true, trusted: true, overlap: time.Hour}, 2*day + 2*time.Hour, stepForget},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.situation.hosts == nil {
				test.situation.hosts = hosts
			}
			if got := test.situation.nextStep(now.Add(test.after)); got != test.want {
				t.Errorf("next is %q, want %q", got, test.want)
			}
		})
	}
}

// TestServesClocksThatAreBehind: a certificate of an operator whose clock is ahead is valid for an API server whose clock is right.
func TestServesClocksThatAreBehind(t *testing.T) {
	t.Parallel()
	now, hosts := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), []string{"conversion.operators.svc"}
	made, roots := start(t, hosts, now), x509.NewCertPool()
	roots.AddCert(made.authorities[0])
	if _, err := made.serving.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: hosts[0], CurrentTime: now.Add(-10 * time.Minute)}); err != nil {
		t.Errorf("by a clock that is ten minutes behind, the new certificate is not valid: %v", err)
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	now := time.Now()
	good, other := start(t, []string{"a.svc"}, now), start(t, []string{"a.svc"}, now)
	for name, change := range map[string]map[string][]byte{
		"an emptied CA":                {keyAuthorities: nil},
		"a CA that is no certificate":  {keyAuthorities: []byte("-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n")},
		"another CA's key":             {keyAuthorityKey: other.authorityKey},
		"another certificate's key":    {keyPrivate: other.servingPair.Key},
		"another CA's certificate":     {keyCertificate: other.servingPair.Certificate, keyPrivate: other.servingPair.Key},
		"another CA, with its own key": {keyAuthorities: other.bundle(), keyAuthorityKey: other.authorityKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := good.data()
			maps.Copy(data, change)
			if _, err := readMaterial(data); err == nil {
				t.Error("it is accepted")
			}
		})
	}
	if _, err := readMaterial(good.data()); err != nil {
		t.Error(err)
	}
}
