package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const prefix = "cr.mysqloperator.grtl.github.com/"

// What instances carry beside their spec.
const (
	// FinalizerData holds an instance until its data is deleted. It is there only where the data has to go: with policy Delete, or expired.
	FinalizerData = prefix + "backup-data"
	// AnnotationExpired marks an instance that retention deletes: its data goes, whatever its policy. See ExpiredBy.
	AnnotationExpired = prefix + "expired"
	// AnnotationReplaced marks an instance whose schedule makes another one in its place (ReplaceConcurrent).
	AnnotationReplaced = prefix + "replaced"
)

// The labels of Jobs, of their Pods, and of volumes for backups.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "mysql-operator"

	// LabelBackup tells the instance that a Job makes or deletes the data of (LabelValue).
	LabelBackup = prefix + "backup-instance"
	// LabelRestore tells the cluster that a Job restores.
	LabelRestore = prefix + "restore"

	// LabelVersion is on the Job that asks the image of a restored cluster for its version, and on its Pods. They have LabelRestore as well.
	LabelVersion = prefix + "server-version"

	// Selector selects every Job, Pod and claim that the operator makes for backups and restores. Members' Pods are not among them.
	Selector = labelName + "=mysql-backup," + labelManagedBy + "=" + managedBy
)

// AnnotationOrder, on a Job, is the hash of the order that the Job carries out: Hash. A Job's Pods cannot be changed; an order that changes
// needs another Job.
const AnnotationOrder = prefix + "order"

// AnnotationAttempts, on the Job of a backup, is how many Pods its former Jobs had. A backup has more than one Job where somebody deleted
// the first, or where that ended well and did not tell what it made.
const AnnotationAttempts = prefix + "former-attempts"

// Labels are on everything the operator makes for the backups of a cluster: Jobs, Pods and volumes.
func Labels(cluster string) map[string]string {
	return map[string]string{labelName: "mysql-backup", labelInstance: LabelValue(cluster), labelManagedBy: managedBy}
}

// ClaimLabels are on a volume for backups that the operator makes. Its cluster's name is none of them: who deletes what belongs to a
// cluster by that label must not delete the cluster's backups.
func ClaimLabels() map[string]string {
	return map[string]string{labelName: "mysql-backup", labelManagedBy: managedBy}
}

// maxName is how long a Job's name may be: it becomes the value of a label of its Pods (Kubernetes docs, "Job").
const maxName = 63

// JobName joins base and suffix to a name for a Job. What is too long is cut, and a hash of the whole keeps it apart from others.
func JobName(base, suffix string) string {
	whole := base + "-" + suffix
	if len(whole) <= maxName && !strings.Contains(whole, ".") {
		return whole
	}
	return shortened(strings.ReplaceAll(base, ".", "-"), maxName-len(suffix)-1, whole) + "-" + suffix
}

// LabelValue is the name as the value of a label, which is shorter than a name may be.
func LabelValue(name string) string {
	if len(name) <= maxName {
		return name
	}
	return shortened(name, maxName, name)
}

// hashLength is how many hexadecimal digits keep two names apart that begin alike.
const hashLength = 10

func shortened(text string, limit int, whole string) string {
	sum := sha256.Sum256([]byte(whole))
	text = text[:min(len(text), limit-hashLength-1)]
	return strings.TrimRight(text, "-._") + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// Host is the name that a transfer's Pod has in the cluster's certificate.
func Host(namespace, cluster string) string {
	return "transfer." + cluster + "-pods." + namespace + ".svc"
}
