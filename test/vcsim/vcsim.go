//go:build !without_vcenter

// Package vcsim is a vCenter for tests: govmomi's simulator, as a server over TLS, behind a line that can be cut. It can refuse, be slow,
// forget its sessions, and restart.
package vcsim

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi"
	vimfault "github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// The account of the simulator, and what it has for tests to clone.
const (
	User     = "Administrator@vsphere.local"
	Password = "Admin!23"
	Template = "vm-operator-template"
)

// CloneTakes is how long the simulator takes for a clone: long enough to look at it, and to be killed meanwhile.
const CloneTakes = 500 * time.Millisecond

// T is what a vCenter needs of a test.
type T interface {
	Helper()
	Context() context.Context
	Cleanup(after func())
	Fatal(what ...any)
}

// VCenter is a running vCenter.
type VCenter struct {
	t     T
	admin *govmomi.Client
	// Host is its address, as in VC_HOST, and Authorities what to trust.
	Host, Authorities string

	certificate []byte
	target      string
	inside      *simulator.Context

	mu       sync.Mutex
	listener net.Listener
	lines    map[net.Conn]bool

	rules sync.Mutex
	// calls counts requests by method, of all but the administrator.
	calls map[string]int
	// fault answers a method in place of the simulator, and delay has it wait first.
	fault func(method string) types.BaseMethodFault
	delay time.Duration
	extra *extras
}

// patient sets how long all simulators' tasks take. It is a setting of the whole process.
//
//nolint:gochecknoglobals // the simulator's setting is one, too
var patient sync.Once

// starting is held while a simulator is made: it writes settings of the whole process then.
//
//nolint:gochecknoglobals // as above
var starting sync.Mutex

// New starts a vCenter with the datacenter DC0 and a template, on this machine's own address.
func New(t T) *VCenter {
	t.Helper()
	v := start(t, "127.0.0.1", new(tls.Config))
	v.Authorities = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: v.certificate}))
	return v
}

// NewAt is New on another address, with a certificate for it, which some authorities have signed.
func NewAt(t T, address string, certificate tls.Certificate, authorities string) *VCenter {
	t.Helper()
	v := start(t, address, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	v.Authorities = authorities
	return v
}

func start(t T, address string, security *tls.Config) *VCenter {
	t.Helper()
	patient.Do(func() {
		simulator.TaskDelay.MethodDelay = map[string]int{"CloneVm": int(CloneTakes / time.Millisecond), "LockHandoff": 0}
	})
	model := simulator.VPX()
	starting.Lock()
	defer starting.Unlock()
	if err := model.Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Remove)
	model.Service.TLS = security
	model.Service.Listen = &url.URL{User: url.UserPassword(User, Password)}
	v := &VCenter{t: t, lines: map[net.Conn]bool{}, calls: map[string]int{}, extra: newExtras(), inside: model.Service.Context}
	model.Service.Context.Map.AddHandler(v.extra)
	model.Service.Context.Map.Handler = v.handle
	server := model.Service.NewServer()
	t.Cleanup(server.Close)
	v.target = server.Listener.Addr().String()
	v.certificate = server.Certificate().Raw
	v.listen(net.JoinHostPort(address, "0"))
	t.Cleanup(v.Down)
	v.login(server.URL)
	v.prepare(model.Service.Context.Map)
	v.rules.Lock()
	defer v.rules.Unlock()
	clear(v.calls)
	return v
}

// login makes the test's own client, which does not go over the line.
func (v *VCenter) login(at *url.URL) {
	v.t.Helper()
	direct := *at
	direct.User = url.UserPassword(User, Password)
	client, err := govmomi.NewClient(v.t.Context(), &direct, true)
	if err != nil {
		v.t.Fatal(err)
	}
	v.admin = client
}

// prepare makes the template.
func (v *VCenter) prepare(registry *simulator.Registry) {
	v.t.Helper()
	machine := v.find("DC0_C0_RP0_VM0")
	v.done(machine.PowerOff(v.t.Context()))
	v.done(machine.Rename(v.t.Context(), Template))
	registered, is := registry.Get(machine.Reference()).(*simulator.VirtualMachine)
	if !is {
		v.t.Fatal("the simulator's machine is none")
	}
	registry.Put(&cloner{VirtualMachine: registered, extra: v.extra})
}

// Find returns a machine by its name, or path below the folder of machines.
func (v *VCenter) Find(name string) *object.VirtualMachine {
	v.t.Helper()
	return v.find(name)
}

func (v *VCenter) find(name string) *object.VirtualMachine {
	v.t.Helper()
	machine, err := v.finder().VirtualMachine(v.t.Context(), "/DC0/vm/"+name)
	if err != nil {
		v.t.Fatal(err)
	}
	return machine
}

func (v *VCenter) finder() *find.Finder { return find.NewFinder(v.admin.Client) }

func (v *VCenter) done(task *object.Task, err error) {
	v.t.Helper()
	if err == nil {
		err = task.WaitEx(v.t.Context())
	}
	if err != nil {
		v.t.Fatal(err)
	}
}

// PowerOff powers a machine off, and Destroy deletes one, as a user would behind the operator's back.
func (v *VCenter) PowerOff(name string) {
	v.t.Helper()
	v.done(v.find(name).PowerOff(v.t.Context()))
}

// destroyTries bounds how often Destroy tries.
const destroyTries = 20

// Destroy deletes a machine. An operator that sees it powered off may power it on before it is deleted: then Destroy tries again.
func (v *VCenter) Destroy(name string) {
	v.t.Helper()
	machine := v.find(name)
	var err error
	for range destroyTries {
		_ = waitFor(v.t.Context(), machine.PowerOff) // it may be off
		if err = waitFor(v.t.Context(), machine.Destroy); !vimfault.Is(err, &types.InvalidPowerState{}) {
			break
		}
	}
	if err != nil {
		v.t.Fatal(fmt.Errorf("destroy %s: %w", name, err))
	}
}

// waitFor begins a task and waits for its end.
func waitFor(ctx context.Context, begin func(context.Context) (*object.Task, error)) error {
	task, err := begin(ctx)
	if err != nil {
		return err
	}
	return task.WaitEx(ctx)
}

// Rename renames a machine.
func (v *VCenter) Rename(name, to string) {
	v.t.Helper()
	v.done(v.find(name).Rename(v.t.Context(), to))
}

// RenameFolder renames a folder below the folder of machines.
func (v *VCenter) RenameFolder(name, to string) {
	v.t.Helper()
	folder, err := v.finder().Folder(v.t.Context(), "/DC0/vm/"+name)
	if err != nil {
		v.t.Fatal(err)
	}
	v.done(folder.Rename(v.t.Context(), to))
}

// Folder makes a folder below the folder of machines.
func (v *VCenter) Folder(name string) *object.Folder {
	v.t.Helper()
	root, err := v.finder().Folder(v.t.Context(), "/DC0/vm")
	if err != nil {
		v.t.Fatal(err)
	}
	made, err := root.CreateFolder(v.t.Context(), name)
	if err != nil {
		v.t.Fatal(err)
	}
	return made
}

// Clone makes a machine of another, with its marks, as a person would.
func (v *VCenter) Clone(from, folder, name string, extra ...types.BaseOptionValue) {
	v.t.Helper()
	into, err := v.finder().Folder(v.t.Context(), "/DC0/vm/"+folder)
	if err != nil {
		v.t.Fatal(err)
	}
	source := v.find(from)
	pool, err := source.ResourcePool(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	reference := pool.Reference()
	v.extra.expect(name, types.VirtualMachineConfigSpec{ExtraConfig: extra})
	v.done(source.Clone(v.t.Context(), into, name, types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{Pool: &reference},
	}))
}

// Machines are all machines by name, but those that the simulator begins with: what they have and whether they run, as "2 CPU, 4 GiB, on".
// Of two with one name the second is told, too.
func (v *VCenter) Machines(ctx context.Context) (map[string]string, error) {
	all, err := view.NewManager(v.admin.Client).CreateContainerView(ctx, v.admin.ServiceContent.RootFolder, []string{"VirtualMachine"}, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = all.Destroy(ctx) }()
	var machines []mo.VirtualMachine
	if err := all.Retrieve(ctx, []string{"VirtualMachine"}, []string{"name", "config.hardware", "runtime.powerState"}, &machines); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, one := range machines {
		if strings.HasPrefix(one.Name, "DC0_") || one.Name == Template || one.Config == nil {
			continue
		}
		name := one.Name
		for found[name] != "" {
			name += " (again)"
		}
		found[name] = sized(one)
	}
	return found, nil
}

func sized(one mo.VirtualMachine) string {
	power := strings.ToLower(strings.TrimPrefix(string(one.Runtime.PowerState), "powered"))
	return fmt.Sprintf("%d CPU, %d GiB, %s", one.Config.Hardware.NumCPU, one.Config.Hardware.MemoryMB/1024, power)
}

// Folders are the folders below the datacenter's folder of machines.
func (v *VCenter) Folders(ctx context.Context) ([]string, error) {
	found, err := v.finder().FolderList(ctx, "/DC0/vm/*")
	if _, none := errors.AsType[*find.NotFoundError](err); none {
		return nil, nil
	}
	names := []string{}
	for _, one := range found {
		names = append(names, one.Name())
	}
	slices.Sort(names)
	return names, err
}

// ForgetSessions ends all sessions but the test's own, as a restart or half an hour of silence does, and returns how many there were.
func (v *VCenter) ForgetSessions() int {
	v.t.Helper()
	manager, keys := session.NewManager(v.admin.Client), v.Sessions()
	if err := manager.TerminateSession(v.t.Context(), keys); err != nil && len(keys) > 0 {
		v.t.Fatal(err)
	}
	return len(keys)
}

// Sessions are all sessions but the test's own.
func (v *VCenter) Sessions() []string {
	v.t.Helper()
	manager := session.NewManager(v.admin.Client)
	own, err := manager.UserSession(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	var seen mo.SessionManager
	if err := v.admin.RetrieveOne(v.t.Context(), *v.admin.ServiceContent.SessionManager, []string{"sessionList"}, &seen); err != nil {
		v.t.Fatal(err)
	}
	keys := []string{}
	for _, one := range seen.SessionList {
		if one.Key != own.Key {
			keys = append(keys, one.Key)
		}
	}
	return keys
}

// handle is asked before the simulator does anything.
func (v *VCenter) handle(ctx *simulator.Context, method *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	if ctx.Session != nil && ctx.Session.UserAgent != "mysql-operator" {
		return nil, nil
	}
	v.rules.Lock()
	v.calls[method.Name]++
	delay, answer := v.delay, v.fault
	v.rules.Unlock()
	if delay > 0 && method.Name != "RetrieveServiceContent" {
		wait, stop := context.WithTimeout(v.t.Context(), delay)
		<-wait.Done()
		stop()
	}
	if answer != nil {
		if fault := answer(method.Name); fault != nil {
			return nil, fault
		}
	}
	if method.Name == "Destroy_Task" {
		v.extra.finish()
	}
	return nil, nil
}

// Calls is how often a method was called, and all of them for the empty string.
func (v *VCenter) Calls(method string) int {
	v.rules.Lock()
	defer v.rules.Unlock()
	if method != "" {
		return v.calls[method]
	}
	sum := 0
	for count := range maps.Values(v.calls) {
		sum += count
	}
	return sum
}

// Fail has methods answered by a fault; nil ends that.
func (v *VCenter) Fail(fault func(method string) types.BaseMethodFault) {
	v.rules.Lock()
	defer v.rules.Unlock()
	v.fault = fault
}

// Slow has every call wait.
func (v *VCenter) Slow(delay time.Duration) {
	v.rules.Lock()
	defer v.rules.Unlock()
	v.delay = delay
}
