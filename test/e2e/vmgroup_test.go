//go:build !without_vcenter

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/test/sample"
	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

// fleet is a namespace, and a vCenter that its Pods reach: govmomi's simulator.
type fleet struct {
	*place
	vcenter *vcsim.VCenter
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	p := newOpenPlace(t)
	address := machineAddress(p)
	files := &bucket{root: t.TempDir()}
	certificate, key := files.certificate(t, address)
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return &fleet{place: p, vcenter: vcsim.NewAt(t, address, pair, files.ca)}
}

// says waits until `kubectl get vg` prints this after the name: phase, current and desired machines, CPUs, memory, template, message.
func (f *fleet) says(want string) {
	f.t.Helper()
	f.wait("the VmGroup to say "+want, readyLimit, func(ctx context.Context) (bool, string) {
		text, err := f.kubectl.Run(ctx, "get", "vg", "vmgroup-sample", "-n", f.namespace, "--no-headers")
		if err != nil {
			return false, err.Error()
		}
		_, seen, _ := strings.Cut(strings.Join(strings.Fields(text), " "), " ")
		return strings.HasPrefix(seen, want), seen
	})
}

// has waits until the vCenter has as many machines of the group, each like this, and nothing else.
func (f *fleet) has(number int, each string) {
	f.t.Helper()
	want := map[string]string{}
	for i := range number {
		want[f.machine(i)] = each
	}
	f.wait(fmt.Sprintf("%d machines with %s", number, each), readyLimit, func(ctx context.Context) (bool, string) {
		found, err := f.vcenter.Machines(ctx)
		return err == nil && maps.Equal(found, want), fmt.Sprint(found, err)
	})
}

func (f *fleet) folder() string            { return f.namespace + "-vmgroup-sample" }
func (f *fleet) machine(number int) string { return fmt.Sprintf("%s-%d", f.folder(), number) }
func (f *fleet) path(number int) string    { return f.folder() + "/" + f.machine(number) }

// change is a merge patch of the group.
func (f *fleet) change(patch string) {
	f.t.Helper()
	f.run("patch", "vg", "vmgroup-sample", "-n", f.namespace, "--type=merge", "--patch", patch)
}

// credentials makes the Secret as the founding document does, with further keys.
func (f *fleet) credentials(more ...string) {
	f.t.Helper()
	arguments := []string{
		"create", "secret", "generic", "vc-creds", "-n", f.namespace,
		"--from-literal=VC_USER=" + vcsim.User, "--from-literal=VC_PASS=" + vcsim.Password, "--from-literal=VC_HOST=" + f.vcenter.Host,
	}
	f.run(append(arguments, more...)...)
}

// TestVmGroupWalkThrough follows the founding document: the Secret, a group, its columns, the scale subresource, the limits, the finalizer.
func TestVmGroupWalkThrough(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 4)
	f := newFleet(t)
	group, err := os.ReadFile("deploy/samples/vmgroup.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f.mustApply(string(group))
	f.says("ERROR 3 2 1 vm-operator-template") // kubectl prints nothing for a number that is not known

	t.Log("a vCenter with a certificate of its own is not trusted until its authority is in the Secret")
	f.credentials()
	f.wait("the certificate not to be trusted", readyLimit, func(ctx context.Context) (bool, string) {
		seen, err := f.kubectl.Run(ctx, "get", "vg", "vmgroup-sample", "-n", f.namespace, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}`)
		return err == nil && seen == "CertificateNotTrusted", seen
	})
	authorities := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authorities, []byte(f.vcenter.Authorities), 0o600); err != nil {
		t.Fatal(err)
	}
	f.run("delete", "secret", "vc-creds", "-n", f.namespace)
	f.credentials("--from-file=VC_CA=" + authorities)
	f.says("RUNNING 3 3 2 1 vm-operator-template 3 machines run, each with 2 CPU and 1 GiB")
	f.has(3, "2 CPU, 1 GiB, on")

	t.Log("scaled, killed in the middle, and changed")
	f.run("scale", "vg", "vmgroup-sample", "-n", f.namespace, "--replicas=5")
	f.wait("the fourth machine to be begun", readyLimit, func(context.Context) (bool, string) {
		return f.vcenter.Calls("CloneVM_Task") > 3, fmt.Sprint(f.vcenter.Calls("CloneVM_Task"))
	})
	kill(t, "mysql-operator", "mysql-operator-vsphere")
	f.has(5, "2 CPU, 1 GiB, on")
	f.run("scale", "vg", "vmgroup-sample", "-n", f.namespace, "--replicas=2")
	f.has(2, "2 CPU, 1 GiB, on")
	f.change(`{"spec":{"cpu":4,"memory":2}}`)
	f.has(2, "4 CPU, 2 GiB, on")
	if _, err := f.try("patch", "vg", "vmgroup-sample", "--type=merge", "--patch", `{"spec":{"cpu":5}}`); err == nil || !strings.Contains(err.Error(), "less than or equal to 4") {
		t.Errorf("5 CPUs: %v", err)
	}

	t.Log("what others do is put right, also what they did while the vCenter was away")
	f.vcenter.Down()
	f.says("ERROR")
	f.vcenter.PowerOff(f.path(0))
	f.vcenter.Destroy(f.path(1))
	f.vcenter.Up()
	f.has(2, "4 CPU, 2 GiB, on")
	f.says("RUNNING 2 2 4 2 vm-operator-template 2 machines run, each with 4 CPU and 2 GiB")

	t.Log("deleting it deletes the machines and the folder")
	f.run("delete", "vg", "vmgroup-sample", "-n", f.namespace, "--timeout=60s")
	f.has(0, "")
	if folders, err := f.vcenter.Folders(t.Context()); err != nil || len(folders) > 0 {
		t.Errorf("folders %v, error %v", folders, err)
	}
}
