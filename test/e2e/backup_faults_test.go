package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// slowly makes a backup of the tests' data take long enough for a fault in the middle; verySlowly, a restore with several.
const (
	slowly     = "bandwidthLimit: 3Mi"
	verySlowly = "bandwidthLimit: 2Mi"
)

// TestBackupsGoOn ends, in the middle of a backup, everything that takes part in it. Each backup is complete in the end, and clients
// continue.
func TestBackupsGoOn(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start(2)
	db := p.open(p.cluster, p.password)
	p.seed(db, 40)
	want := p.checksums(db)
	w := p.startWriter()
	replica := p.cluster + "-1"
	stories := []struct {
		name  string
		fault func(pod string)
	}{
		{"process-killed", func(pod string) { kill(t, pod, protocol.Program) }},
		{"pod-deleted", func(pod string) { p.run("delete", "pod", pod, "-n", p.namespace, "--wait=false") }},
		{"pod-deleted-at-once", func(pod string) {
			p.run("delete", "pod", pod, "-n", p.namespace, "--force", "--grace-period=0", "--wait=false")
		}},
		{"agent-killed", func(string) { kill(t, replica, agent.Program) }},
		{"mysqld-killed", func(string) { kill(t, replica, "mysqld") }},
	}
	sampled, last := sample.New(t), ""
	for i, story := range stories {
		if !sampled.Takes(i) {
			continue
		}
		last = story.name
		p.settled(2)
		p.goesOn(w)
		p.mustApply(p.instance(story.name, slowly))
		p.copied(story.name, 20)
		story.fault(p.transferPod("backup-instance=" + story.name))
		t.Log(p.waitBackup(story.name, "Completed Completed", backupLimit))
		p.goesOn(w)
	}
	w.end()
	p.nothingLost(w, db)

	t.Log("the last one is as good as any")
	p.loseCluster()
	p.mustApply(p.manifest("fromBackup: "+last, "replicas: 1"))
	p.settled(1)
	p.sameTables(p.open(p.cluster, p.password), want)
}

// TestRestoreGoesOn ends, in the middle of a restore, what takes part in it, one after the other.
func TestRestoreGoesOn(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start(1)
	db := p.open(p.cluster, p.password)
	p.seed(db, 40)
	want := p.checksums(db)
	p.mustApply(p.instance("good"))
	p.waitBackup("good", "Completed", backupLimit)
	p.loseCluster()

	p.mustApply(p.manifest("fromBackup: good", "replicas: 2", "restore:", "  "+verySlowly))
	for _, fault := range []func(pod string){
		func(pod string) { kill(t, pod, protocol.Program) },
		func(pod string) {
			p.run("delete", "pod", pod, "-n", p.namespace, "--force", "--grace-period=0", "--wait=false")
		},
	} {
		p.isRestoring()
		pod, before := p.transferPod("restore="+p.cluster), p.restarts()
		fault(pod)
		p.wait("the fault to show", changeLimit, func(context.Context) (bool, string) {
			now := p.restarts()
			return now != before, now
		})
	}
	p.restored()
	p.settled(2)
	p.sameTables(p.open(p.cluster, p.password), want)
	p.sameTables(p.open(p.cluster+"-read", p.password), want)
}

// isRestoring waits until a restore has begun, and is not at its end: the moment for a fault.
func (p *place) isRestoring() {
	p.t.Helper()
	p.wait("the restore to be on its way", changeLimit, func(ctx context.Context) (bool, string) {
		state := p.field(ctx, "{.status.restore.phase} {.status.restore.progress.percent} {.status.phase}")
		var phase string
		var percent int
		_, err := fmt.Sscan(state, &phase, &percent)
		return err == nil && phase == "Running" && percent >= 10 && percent < 80, state
	})
}

// transferPod is the Pod that is at work on a backup or a restore.
func (p *place) transferPod(label string) string {
	p.t.Helper()
	name := ""
	p.wait("a Pod for "+label, changeLimit, func(ctx context.Context) (bool, string) {
		seen, err := p.objects.Fields(ctx, core("pods"), p.namespace, metav1.ListOptions{
			LabelSelector: "cr.mysqloperator.grtl.github.com/" + label, FieldSelector: "status.phase=Running",
		}, "{.items[*].metadata.name}")
		fields := strings.Fields(seen)
		if err != nil || len(fields) != 1 {
			return false, seen
		}
		name = fields[0]
		return true, seen
	})
	return name
}

// TestRestoreRefuses has a cluster told of backups that must not be restored: nothing is made of them, and what is there stays.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	p := newPlace(t)
	p.start(1)
	db := p.open(p.cluster, p.password)
	p.seed(db, 4)
	for _, name := range []string{"corrupt", "incomplete", "good"} {
		p.mustApply(p.instance(name))
		p.waitBackup(name, "Completed", backupLimit)
	}
	folder := filepath.Join(p.volume(p.cluster+"-backups"), p.namespace, p.cluster)
	flipByte(t, filepath.Join(folder, "corrupt"))
	if err := os.Remove(filepath.Join(folder, "incomplete", "manifest.json")); err != nil {
		t.Fatal(err)
	}

	t.Log("where there is data already, nothing is restored")
	p.run("delete", "mysqlcluster", p.cluster, "-n", p.namespace)
	p.mustApply(p.manifest("fromBackup: good", "replicas: 1"))
	p.waitReady("False DataExists", changeLimit)
	p.loseCluster()

	for name, reason := range map[string]string{"corrupt": "BackupCorrupt", "incomplete": "BackupIncomplete", "none": "BackupNotFound"} {
		t.Log(name)
		p.mustApply(p.manifest("fromBackup: "+name, "replicas: 1"))
		t.Log(p.waitReady("False "+reason, changeLimit))
		if sets := p.run("get", "sts", "-n", p.namespace, "-o", "name"); sets != "" {
			t.Errorf("members were made for a backup that was refused: %s", sets)
		}
		p.loseCluster()
	}

	t.Log("the good one is good all the same")
	p.mustApply(p.manifest("fromBackup: good", "replicas: 1"))
	p.settled(1)
}

// volume is where a claim's volume is on this machine.
func (p *place) volume(claim string) string {
	p.t.Helper()
	name := p.run("get", "pvc", claim, "-n", p.namespace, "-o", "jsonpath={.spec.volumeName}")
	path := p.run("get", "pv", name, "-o", "jsonpath={.spec.local.path}")
	if _, err := os.Stat(path); err != nil {
		p.t.Fatalf("the volume of %s is not on this machine: %v", claim, err)
	}
	return path
}

// flipByte changes one bit in the middle of a backup's first part.
func flipByte(t *testing.T, folder string) {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(folder, "part-*"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("no parts in %s: %v", folder, err)
	}
	content, err := os.ReadFile(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(parts[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFullVolumes backs up to a volume that is too small: that is told, and once there is room the next attempt is good.
func TestFullVolumes(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 0)
	p := newPlace(t)
	p.start(1)
	p.seed(p.open(p.cluster, p.password), 40)
	enlarge := p.smallVolume("small", 16)
	p.mustApply(fmt.Sprintf(`apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: small
spec:
  storageClassName: small-%s
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`, p.namespace))
	p.mustApply(p.instance("too-much", "destination: {claim: small}"))
	t.Log(p.waitBackup("too-much", "Started DestinationFull", changeLimit))
	enlarge()
	t.Log(p.waitBackup("too-much", "Completed", backupLimit))
	p.settled(1)

	t.Log("the same on the other side: a member's volume that is too small for the backup")
	want := p.checksums(p.open(p.cluster, p.password))
	p.loseCluster()
	enlarge = p.smallVolume("data-"+p.cluster+"-0", 64)
	p.mustApply(p.manifest("fromBackup: too-much", "replicas: 1", "storageClassName: small-"+p.namespace))
	t.Log(p.waitReady("False VolumeTooSmall", changeLimit))
	enlarge()
	p.restored()
	p.settled(1)
	p.sameTables(p.open(p.cluster, p.password), want)
}

// smallVolume makes a volume for a claim that really ends: a folder in a file system of its own, most of which is taken by something else.
// It returns what makes room.
func (p *place) smallVolume(claim string, mebibytes int) (enlarge func()) {
	p.t.Helper()
	const whole = 768
	node, folder := p.smallFolder(claim)
	p.onNode(node, "mkdir", "-p", folder)
	p.onNode(node, "truncate", "--size", fmt.Sprintf("%dM", whole), folder+".ext4")
	p.onNode(node, "mkfs.ext4", "-q", "-m", "0", folder+".ext4")
	p.onNode(node, "mount", "-o", "loop", folder+".ext4", folder)
	p.take(node, folder, "taken", int64(mebibytes)<<20)
	p.onNode(node, "mkdir", "--mode", "0777", folder+"/volume")
	p.last = append(p.last, func(ctx context.Context) error {
		_, err := p.kubectl.Run(ctx, "delete", "pv", p.namespace+"-"+claim, "--ignore-not-found", "--wait=false")
		_, unmounted := p.node(ctx, node, "umount", folder)
		_, removed := p.node(ctx, node, "rm", "-r", folder, folder+".ext4")
		return errors.Join(err, unmounted, removed)
	})
	p.mustApply(fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata:
  name: %[1]s-%[2]s
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: small-%[1]s
  claimRef: {namespace: %[1]s, name: %[2]s}
  local: {path: %[3]s/volume}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[4]s]}]}]}}
`, p.namespace, claim, folder, node))
	return func() {
		p.t.Helper()
		p.onNode(node, "rm", folder+"/taken")
	}
}

// smallFolder is where smallVolume puts a claim's volume.
func (p *place) smallFolder(claim string) (node, folder string) {
	p.t.Helper()
	return p.run("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"), "/var/lib/" + p.namespace + "-" + claim
}

// take leaves so many bytes of a file system free.
func (p *place) take(node, folder, file string, free int64) {
	p.t.Helper()
	available := strings.TrimSpace(p.onNode(node, "findmnt", "--noheadings", "--bytes", "--output", "AVAIL", folder))
	bytes, err := strconv.ParseInt(available, 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	p.onNode(node, "fallocate", "--length", fmt.Sprint(bytes-free), folder+"/"+file)
}

// fill leaves so little room on a volume of smallVolume that it counts as full, and enough for what others write to it meanwhile, as the
// agent its ballast.
func (p *place) fill(claim string) {
	p.t.Helper()
	node, folder := p.smallFolder(claim)
	p.take(node, folder, "filler", 30<<20)
}

// onNode runs a command inside a node of the dev cluster and returns what it prints.
func (p *place) onNode(node string, command ...string) string {
	p.t.Helper()
	ctx, cancel := p.context(changeLimit)
	defer cancel()
	output, err := p.node(ctx, node, command...)
	if err != nil {
		p.t.Fatal(err)
	}
	return output
}

func (p *place) node(ctx context.Context, node string, command ...string) (string, error) {
	arguments := append([]string{"run", "./devcluster", "on", "--dir", filepath.Dir(p.kubectl.Config), node, "--"}, command...)
	output, err := exec.CommandContext(ctx, "go", arguments...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("on %s: %s: %w: %s", node, strings.Join(command, " "), err, output)
	}
	return string(output), nil
}
