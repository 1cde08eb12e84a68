//go:build !race && !without_vcenter

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vsphere"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

func vmGroups() schema.Kind {
	return schema.Kind{Group: schema.VMGroupGroup, Version: "v1alpha1", Kind: "VmGroup", Plural: "vmgroups"}
}

// fleet is a namespace in which VmGroups are served, and a vCenter.
type fleet struct {
	*shop
	vcenter *vcsim.VCenter
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	server := pool.Shared(t)
	define(t, server, vmGroups())
	f := &fleet{shop: &shop{Server: server, t: t, namespace: server.Namespace(t)}, vcenter: vcsim.New(t)}
	f.grantRules(reconcile.Rules(vmgroup.Controller(vmGroups(), vmgroup.Settings{})))
	return f
}

// credentials makes the Secret, as the founding document does.
func (f *fleet) credentials(password string) {
	f.t.Helper()
	secret := object(f.t, "apiVersion: v1\nkind: Secret\nmetadata: {name: vc-creds}\n")
	secret.Object["stringData"] = map[string]any{"VC_USER": vcsim.User, "VC_PASS": password, "VC_HOST": f.vcenter.Host, "VC_CA": f.vcenter.Authorities}
	f.create(coreResource("secrets"), secret)
}

func (f *fleet) group(name string, replicas int) {
	f.t.Helper()
	f.create(vmGroups().GVR(), object(f.t, fmt.Sprintf("apiVersion: vm.codeconnect.vmworld.com/v1alpha1\nkind: VmGroup\nmetadata: {name: %s}\nspec: {cpu: 2, memory: 1, replicas: %d, template: %s}\n", name, replicas, vcsim.Template)))
}

func (f *fleet) read(ctx context.Context, name string) (v1alpha1.VmGroup, bool) {
	f.t.Helper()
	found, err := f.Dynamic.Resource(vmGroups().GVR()).Namespace(f.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return v1alpha1.VmGroup{}, false
	}
	if err != nil {
		f.t.Fatal(err)
	}
	var group v1alpha1.VmGroup
	if err := schema.DecodeStrict(found, &group); err != nil {
		f.t.Fatal(err)
	}
	return group, true
}

// phase waits until a group is in a phase, for the reason, and has seen its last change.
func (f *fleet) phase(name string, phase v1alpha1.Phase, reason string) v1alpha1.VmGroup {
	f.t.Helper()
	var group v1alpha1.VmGroup
	apiserver.Eventually(f.t, func(ctx context.Context) string {
		group, _ = f.read(ctx, name)
		at := slices.IndexFunc(group.Status.Conditions, func(one metav1.Condition) bool { return one.Type == v1alpha1.ConditionReady })
		if at < 0 || group.Status.Phase != phase || group.Status.Conditions[at].Reason != reason || group.Status.ObservedGeneration != group.Generation {
			return fmt.Sprintf("VmGroup %s is %+v, want %s for %s", name, group.Status, phase, reason)
		}
		return ""
	})
	return group
}

// machines waits until the vCenter has these machines, by the end of their names: NAME-NUMBER.
func (f *fleet) machines(want map[string]string) {
	f.t.Helper()
	apiserver.Eventually(f.t, func(ctx context.Context) string {
		found, err := f.vcenter.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		short := map[string]string{}
		for name, is := range found {
			short[strings.TrimPrefix(name, f.namespace+"-")] = is
		}
		if len(short) != len(want) {
			return fmt.Sprintf("there are %v, want %v", short, want)
		}
		for name, is := range want {
			if short[name] != is {
				return fmt.Sprintf("there are %v, want %v", short, want)
			}
		}
		return ""
	})
}

// like are machines of a group that are all alike.
func like(name string, number int, is string) map[string]string {
	all := map[string]string{}
	for i := range number {
		all[fmt.Sprintf("%s-%d", name, i)] = is
	}
	return all
}

// gone waits until a group is gone.
func (f *fleet) gone(name string) {
	f.t.Helper()
	apiserver.Eventually(f.t, func(ctx context.Context) string {
		if group, is := f.read(ctx, name); is {
			return fmt.Sprintf("VmGroup %s is still there: %+v", name, group.Status)
		}
		return ""
	})
}

// emptied fails the test if the vCenter has a group's machine or folder.
func (f *fleet) emptied() {
	f.t.Helper()
	machines, err := f.vcenter.Machines(f.t.Context())
	folders, errFolders := f.vcenter.Folders(f.t.Context())
	if len(machines)+len(folders) > 0 || errors.Join(err, errFolders) != nil {
		f.t.Errorf("left in the vCenter: machines %v, folders %v, errors %v %v", machines, folders, err, errFolders)
	}
}

// mortal is an operator that may die right after one of its writes, to the API server or the vCenter. What it does then reaches neither
// of them.
type mortal struct {
	vcenter.API
	after int
	stop  context.CancelFunc
	ended chan error

	mu    sync.Mutex
	count int
	dead  bool
}

// write counts a write and dies after it, if it is its time.
func (m *mortal) write(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return context.Canceled
	}
	err := do()
	m.count++
	if m.count == m.after {
		m.dead = true
		m.stop()
		return context.Canceled
	}
	return err
}

func (m *mortal) writes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// Do is vcenter.API's.
func (m *mortal) Do(ctx context.Context, order vcenter.Order) error {
	return m.write(func() error { return m.API.Do(ctx, order) })
}

func (m *mortal) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet || strings.Contains(request.URL.Path, "/events") {
			return next.RoundTrip(request)
		}
		var response *http.Response
		err := m.write(func() error {
			var err error
			response, err = next.RoundTrip(request) //nolint:bodyclose // the caller does
			return err
		})
		return response, err
	})
}

// operateVMs starts an operator, which dies after that many writes; 0 means never.
func (f *fleet) operateVMs(after int, configure ...func(*reconcile.Config)) *mortal {
	f.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(f.t.Context()))
	m := &mortal{API: vsphere.New(time.Now), after: after, stop: stop, ended: make(chan error, 1)}
	config := rest.CopyConfig(f.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: f.operatorUser()}
	config.Wrap(m.around)
	pace := vmgroup.Pace{Step: 50 * time.Millisecond, Rest: 200 * time.Millisecond, Stalled: 200 * time.Millisecond}
	settings := vmgroup.Settings{VCenter: m, Environment: func(string) string { return "" }, Pace: pace}
	whole := reconcile.Config{Rest: config, Namespaces: []string{f.namespace}, Identity: "operator", Logger: testr.New(f.t), DrainTimeout: time.Second}
	for _, change := range configure {
		change(&whole)
	}
	manager, err := reconcile.New(whole, []reconcile.Controller{vmgroup.Controller(vmGroups(), settings)})
	if err != nil {
		f.t.Fatal(err)
	}
	go func() {
		defer close(m.ended)
		m.ended <- manager.Run(ctx)
	}()
	f.t.Cleanup(func() { m.end(f.t) })
	return m
}

// end stops the operator, if it has not died already, and waits until it is gone.
func (m *mortal) end(t *testing.T) {
	t.Helper()
	m.stop()
	if err, ok := <-m.ended; ok && err != nil {
		t.Errorf("the operator ended with: %v", err)
	}
}
