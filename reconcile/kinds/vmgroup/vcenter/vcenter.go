// Package vcenter is the reconciler's interface to vCenters: two calls and their results, in plain values. It does not import the library
// that connects to vCenters: reconcile/kinds/vmgroup/vsphere does, in a separate process (docs/adr/0005).
package vcenter

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// API is one or several vCenters: every call names the account to use.
type API interface {
	// Look returns what exists of a group. Its error is an *Error, or ctx's.
	Look(ctx context.Context, group Group) (Inventory, error)
	// Do carries out one order. Most orders take a while: Do returns when the vCenter has started the task, and a later Look shows its
	// result. Before an order that cannot be undone, Do checks the vCenter again. Its error is an *Error, or ctx's.
	Do(ctx context.Context, order Order) error
}

// Account is the address of a vCenter, and the login.
type Account struct {
	// Host is a name or an address, with or without a port.
	Host, User, Password string
	// Authorities has the certificates to trust, in PEM. Empty means the system's, or Mozilla's if the system has none.
	Authorities string
	// Insecure trusts any certificate.
	Insecure bool
}

// String returns the user and the host without the password: accounts are printed in messages.
func (a Account) String() string {
	// Some users write the login into the host: String leaves that out too.
	return a.User + " at " + a.Host[strings.LastIndex(a.Host, "@")+1:]
}

// GoString returns String, for %#v.
func (a Account) GoString() string { return a.String() }

// Place is where machines are created. Empty fields mean the defaults of the vCenter or the template.
type Place struct {
	Datacenter, Folder, ResourcePool, Datastore string
}

// Group identifies the machines of a VmGroup.
type Group struct {
	Account Account
	Place   Place
	// Folder is the name of the group's folder, in Place.Folder.
	Folder string
	// UID is the mark of the group's machines.
	UID string
	// Template is what new machines are cloned from: a name or a path. Another spelling of the same template is not another template.
	Template string
	// DeletingMachines is the number of machines that a group which is being deleted may have had. Machines of these numbers that are not in
	// its folder are searched for in the whole vCenter. It is 0 for any other group.
	DeletingMachines int32
}

// Power is the power state of a machine.
type Power string

const (
	// PowerOn: the machine runs.
	PowerOn Power = "on"
	// PowerOff: the machine does not run.
	PowerOff Power = "off"
	// PowerSuspended: the machine does not run, and its memory is on disk.
	PowerSuspended Power = "suspended"
)

// Inventory is what exists of a group.
type Inventory struct {
	// Folder is the ID of the group's folder in the vCenter; empty if there is none. Path is its path, or the path that it would have.
	Folder, Path string
	// Elsewhere is the path of a machine of the group that is not in its folder; empty for none. Look searches for it if the folder does
	// not exist, because a user may have renamed or moved it. It also searches if a group that is being deleted has no machine left in its
	// folder.
	Elsewhere string
	// VCenter identifies this vCenter, whatever its name is.
	VCenter string
	// Machines has the virtual machines in the folder, of the group and of others, ordered by name.
	Machines []Machine
	// Others has the names of all other objects in the folder.
	Others []string
	// Cloning has the names of machines that are being cloned and may not be visible yet.
	Cloning []string
	// Failures has the tasks that failed last, at most one for each machine and verb. If the machine is already being created, the reason
	// is Moved.
	Failures []Failure
}

// Machine is a virtual machine in the group's folder.
type Machine struct {
	// ID is the vCenter's ID, Name the name that users see.
	ID, Name string
	// Creating reports whether the vCenter is still creating the machine: its other fields are then unknown.
	Creating bool
	// Owner, Slot and Template are the mark from its creation: the UID of its group, its original name, and its template. Template has the
	// current spelling of Group.Template if it is the same template. They are empty for a machine that no group created.
	Owner, Slot, Template string
	// Source identifies the template that it was cloned from, however that is spelled. It is empty if it was not recorded.
	Source string
	// Original reports whether it is the machine that was created for the group, whatever its name is now. Clones and restored copies are
	// not.
	Original  bool
	CPU       int32
	MemoryMiB int64
	Power     Power
	// Connected reports whether its host answers.
	Connected bool
	// Broken is the vCenter's word for why it cannot use the machine until a user repairs it: inaccessible, invalid or orphaned (vSphere
	// Web Services API, VirtualMachineConnectionState). It is empty for other machines.
	Broken string
	// ConfigUnreadable reports whether the vCenter cannot read the machine's configuration, and so not its mark either.
	ConfigUnreadable bool
	// Busy reports whether the vCenter runs a task on it, Ordered whether the group ordered the task.
	Busy, Ordered bool
	// Tools reports whether its guest can be asked to shut down.
	Tools bool
	// GrowsCPU and GrowsMemory report whether it can get more CPUs and memory while it runs.
	GrowsCPU, GrowsMemory bool
}

// Failure is a task that failed.
type Failure struct {
	// Machine is the name of the task's machine, and Verb its order.
	Machine string
	Verb    Verb
	// CPU and MemoryMiB are the ordered size, if the verb changes the size. An order with another size is another order.
	CPU       int32
	MemoryMiB int64
	// Reason and Message are as in Error.
	Reason  Reason
	Message string
	// InBackoff reports whether it is too early to retry. Times is the number of failures in a row.
	InBackoff bool
	Times     int
}

// Verb is the kind of an order.
type Verb string

const (
	// CreateFolder creates the group's folder.
	CreateFolder Verb = "CreateFolder"
	// Clone creates a machine, powered off.
	Clone Verb = "Clone"
	// Start powers a machine on, from off or suspended.
	Start Verb = "PowerOn"
	// Shutdown asks the guest to shut down.
	Shutdown Verb = "Shutdown"
	// Stop powers a machine off.
	Stop Verb = "PowerOff"
	// Resize changes CPUs and memory of a machine that is off.
	Resize Verb = "Reconfigure"
	// Grow adds CPUs and memory to a machine that runs.
	Grow Verb = "HotAdd"
	// Destroy deletes a machine and its disks.
	Destroy Verb = "Destroy"
	// DeleteFolder deletes the group's folder if it is empty.
	DeleteFolder Verb = "DeleteFolder"
)

// Order is one order to a vCenter.
type Order struct {
	Group Group
	Verb  Verb
	// Machine is the name of the machine, also of one to create. ID is its ID.
	Machine, ID string
	// Replaces reports whether another machine, cloned from Group.Template, must replace this one. If that machine cannot be created, Do
	// does nothing.
	Replaces bool
	// CPU and MemoryMiB are the size that the machine must have.
	CPU       int32
	MemoryMiB int64
}

// Reason is why a call failed, as a reason of conditions and events.
type Reason string

const (
	// Unreachable: the vCenter cannot be reached, or does not answer in time.
	Unreachable Reason = "VCenterUnreachable"
	// LoginRefused: the vCenter refuses the login.
	LoginRefused Reason = "LoginRefused"
	// Untrusted: the vCenter's certificate is not trusted.
	Untrusted Reason = "CertificateNotTrusted"
	// Forbidden: the account is missing a privilege.
	Forbidden Reason = "PermissionDenied"
	// NoPlace: a datacenter, folder, pool or datastore does not exist, or its name is not unique.
	NoPlace Reason = "PlacementNotFound"
	// NoTemplate: the template does not exist, or its name is not unique.
	NoTemplate Reason = "TemplateNotFound"
	// MachineMoved: a machine of the group is in another place of the vCenter.
	MachineMoved Reason = "MachineMoved"
	// Failed: the vCenter tried and failed.
	Failed Reason = "TaskFailed"
	// Moved: the order no longer matches the vCenter. The operator only needs to look again.
	Moved Reason = "Moved"
	// TooManyAccounts: too many accounts are in use at the same time.
	TooManyAccounts Reason = "TooManyAccounts"
	// HelperNotRunning: the operator cannot run the helper program.
	HelperNotRunning Reason = "HelperNotRunning"
)

// Error is why a call failed.
type Error struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// After is how long to wait before the next call; until then, the helper sends the vCenter no request.
	After time.Duration `json:"after"`
}

// Error returns what happened and what a user can do.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Reason, e.Message) }
