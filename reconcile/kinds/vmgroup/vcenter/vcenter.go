// Package vcenter is what a VmGroup's reconciler knows of a vCenter: two questions and their answers, in plain values. It knows nothing of
// the library that speaks to vCenters: that is reconcile/kinds/vmgroup/vsphere, which runs in a process of its own (docs/adr/0005).
package vcenter

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// API is a vCenter, or several: every question names the account to ask with.
type API interface {
	// Look tells what there is of a group. Its error is an *Error, or ctx's.
	Look(ctx context.Context, group Group) (Inventory, error)
	// Do has one thing done. Most take a while: Do returns when the vCenter has begun, and a later Look shows what became of it. Whatever
	// cannot be undone looks again first. Its error is an *Error, or ctx's.
	Do(ctx context.Context, order Order) error
}

// Account is how to reach a vCenter, and as whom.
type Account struct {
	// Host is a name or an address, with or without a port.
	Host, User, Password string
	// Authorities are the certificates to trust, in PEM; empty means the system's, or where it has none, those that Mozilla trusts.
	Authorities string
	// Insecure trusts any certificate.
	Insecure bool
}

// String tells where and who, and not the password: accounts come into messages.
func (a Account) String() string {
	// Some write an account into the host: it is not printed either.
	return a.User + " at " + a.Host[strings.LastIndex(a.Host, "@")+1:]
}

// GoString is String, for %#v.
func (a Account) GoString() string { return a.String() }

// Place is where machines are made. Empty fields mean the vCenter's or the template's own.
type Place struct {
	Datacenter, Folder, ResourcePool, Datastore string
}

// Group is whose machines are meant.
type Group struct {
	Account Account
	Place   Place
	// Folder is the name of the group's own folder, in Place.Folder.
	Folder string
	// UID is the mark of what belongs to the group.
	UID string
	// Template is what new machines are made of: a name or a path. It is no other if only its spelling is.
	Template string
	// Leaving is how many machines a group that is being deleted may have had, by number: those that are not in its folder are looked for
	// everywhere. 0 for any other group.
	Leaving int32
}

// Power is whether a machine runs.
type Power string

const (
	// PowerOn machines run.
	PowerOn Power = "on"
	// PowerOff machines do not.
	PowerOff Power = "off"
	// PowerSuspended machines do not, and have what they had in memory on disk.
	PowerSuspended Power = "suspended"
)

// Inventory is what there is of a group.
type Inventory struct {
	// Folder is the group's folder in the vCenter's terms; empty if there is none. Path is where it is, or would be.
	Folder, Path string
	// Elsewhere is the path of a machine of the group's that is not in its folder. It is looked for where there is no such folder, which
	// somebody may have renamed or moved, and where a group that is being deleted has no machine in it any more. Empty for none.
	Elsewhere string
	// VCenter tells this vCenter from all others, whatever its name.
	VCenter string
	// Machines are the virtual machines in the folder, the group's and others', ordered by name.
	Machines []Machine
	// Others are the names of whatever else is in the folder.
	Others []string
	// Cloning are the names of machines that are being made and may not be visible yet.
	Cloning []string
	// Failures are the tasks that failed last, at most one for each machine and verb.
	// That of a machine which is being made already has the reason Moved.
	Failures []Failure
}

// Machine is a virtual machine in the group's folder.
type Machine struct {
	// ID is the vCenter's own name for it, and Name people's.
	ID, Name string
	// Making says that the vCenter has not finished making it: nothing else is known then.
	Making bool
	// Owner, Slot and Template are the mark it was made with: the UID of its group, the name it was made under, and Group.Template, as it is
	// spelled now if it is the same. Empty for a machine that no group made.
	Owner, Slot, Template string
	// Source tells the template it was made of from all others, however it is spelled. Empty if that was not noted.
	Source string
	// Original says that it is the very machine that was made for the group, whatever its name is now. What people clone or restore of it is
	// not.
	Original  bool
	CPU       int32
	MemoryMiB int64
	Power     Power
	// Connected says that its host answers.
	Connected bool
	// Broken is the vCenter's word for why it can do nothing with the machine until somebody repairs it: inaccessible, invalid or orphaned
	// (vSphere Web Services API, VirtualMachineConnectionState). Empty for none.
	Broken string
	// Unread says that the vCenter cannot tell what is in the machine's configuration, and so not its mark either.
	Unread bool
	// Busy says that a task of the vCenter is at work on it, and Ordered that the group has ordered one.
	Busy, Ordered bool
	// Tools says that its guest can be asked to shut down.
	Tools bool
	// GrowsCPU and GrowsMemory say that it can get more of them while it runs.
	GrowsCPU, GrowsMemory bool
}

// Failure is a task that failed.
type Failure struct {
	// Machine is the name of the machine the task was for, and Verb what it was to do.
	Machine string
	Verb    Verb
	// CPU and MemoryMiB are what it was to have, where the verb is about that. Another size is another thing to try.
	CPU       int32
	MemoryMiB int64
	// Reason and Message are as in Error.
	Reason  Reason
	Message string
	// Resting says that it is too early to try again, and Times how often it has failed in a row.
	Resting bool
	Times   int
}

// Verb is what can be ordered.
type Verb string

const (
	// CreateFolder makes the group's folder.
	CreateFolder Verb = "CreateFolder"
	// Clone makes a machine, powered off.
	Clone Verb = "Clone"
	// Start powers a machine on, from off or suspended.
	Start Verb = "PowerOn"
	// Shutdown asks the guest to shut down.
	Shutdown Verb = "Shutdown"
	// Stop powers a machine off.
	Stop Verb = "PowerOff"
	// Resize gives a machine that is off other CPUs and memory.
	Resize Verb = "Reconfigure"
	// Grow gives a machine that runs more of them.
	Grow Verb = "HotAdd"
	// Destroy deletes a machine and its disks.
	Destroy Verb = "Destroy"
	// DeleteFolder deletes the group's folder if it is empty.
	DeleteFolder Verb = "DeleteFolder"
)

// Order is one thing to do.
type Order struct {
	Group Group
	Verb  Verb
	// Machine is the name of the machine, also of one to be made, and ID its ID.
	Machine, ID string
	// Replaces says that the machine is to go for one that is made of Group.Template: nothing is done to it where none can be.
	Replaces bool
	// CPU and MemoryMiB are what a machine is to have.
	CPU       int32
	MemoryMiB int64
}

// Reason is why something failed: a word for conditions and events.
type Reason string

const (
	// Unreachable: the vCenter cannot be reached, or does not answer in time.
	Unreachable Reason = "VCenterUnreachable"
	// Refused: the vCenter knows neither the user nor the password.
	Refused Reason = "LoginRefused"
	// Untrusted: the vCenter's certificate is not to be trusted.
	Untrusted Reason = "CertificateNotTrusted"
	// Forbidden: the account may not do that.
	Forbidden Reason = "PermissionDenied"
	// NoPlace: a datacenter, folder, pool or datastore does not exist, or is not the only one.
	NoPlace Reason = "PlacementNotFound"
	// NoTemplate: the template does not exist, or is not the only one of its name.
	NoTemplate Reason = "TemplateNotFound"
	// Away: a machine of the group's is somewhere else in the vCenter.
	Away Reason = "MachineMoved"
	// Failed: the vCenter tried, and could not.
	Failed Reason = "TaskFailed"
	// Moved: what was ordered does not fit what there is now; looking again is enough.
	Moved Reason = "Moved"
	// Crowded: too many accounts are in use at once.
	Crowded Reason = "TooManyAccounts"
	// NoHelper: the program that speaks to vCenters cannot be run.
	NoHelper Reason = "HelperNotRunning"
)

// Error is why a question was not answered.
type Error struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// After is how long to wait before asking again; nothing is asked of the vCenter before.
	After time.Duration `json:"after"`
}

// Error says what happened and what to do.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Reason, e.Message) }
