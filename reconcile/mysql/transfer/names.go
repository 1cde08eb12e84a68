package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const prefix = "cr.mysqloperator.grtl.github.com/"

// What instances have in addition to their spec.
const (
	// FinalizerData keeps an instance until its data is deleted. Only instances whose data must be deleted have it: with policy Delete, or
	// expired.
	FinalizerData = prefix + "backup-data"
	// AnnotationExpired marks an instance that retention deletes: its data is deleted with any policy. See ExpiredBy.
	AnnotationExpired = prefix + "expired"
	// AnnotationReplaced marks an instance that the next backup of its schedule replaces (ReplaceConcurrent).
	AnnotationReplaced = prefix + "replaced"
)

// The labels of Jobs, of their Pods, and of volumes for backups.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "mysql-operator"

	// LabelBackup has the instance whose data a Job makes or deletes (LabelValue).
	LabelBackup = prefix + "backup-instance"
	// LabelRestore has the cluster that a Job restores.
	LabelRestore = prefix + "restore"

	// LabelVersion is on the Job that asks the image of a restored cluster for its version, and on the Job's Pods. They have LabelRestore
	// as well.
	LabelVersion = prefix + "server-version"

	// Selector selects every Job, Pod and claim that the operator makes for backups and restores. Members' Pods are not among them.
	Selector = labelName + "=mysql-backup," + labelManagedBy + "=" + managedBy
)

// AnnotationOrder, on a Job, is the hash of the order that the Job carries out: Hash. A Job's Pods cannot be changed, so a changed order
// needs another Job.
const AnnotationOrder = prefix + "order"

// AnnotationAttempts, on the Job of a backup, is how many Pods its previous Jobs had. A backup has more than one Job if a user deleted the
// first one, or if that one succeeded without a report.
const AnnotationAttempts = prefix + "former-attempts"

// Labels are on everything the operator makes for the backups of a cluster: Jobs, Pods and volumes.
func Labels(cluster string) map[string]string {
	return map[string]string{labelName: "mysql-backup", labelInstance: LabelValue(cluster), labelManagedBy: managedBy}
}

// ClaimLabels are on a volume for backups that the operator creates. They do not include the cluster's name: a user who deletes a cluster's
// objects by that label must not delete the cluster's backups.
func ClaimLabels() map[string]string {
	return map[string]string{labelName: "mysql-backup", labelManagedBy: managedBy}
}

// maxName is the maximum length of a Job's name: it becomes the value of a label of its Pods (Kubernetes docs, "Job").
const maxName = 63

// JobName joins base and suffix to a name for a Job. It shortens a long name, and adds a hash of the whole to keep the name unique.
func JobName(base, suffix string) string {
	whole := base + "-" + suffix
	if len(whole) <= maxName && !strings.Contains(whole, ".") {
		return whole
	}
	return shortened(strings.ReplaceAll(base, ".", "-"), maxName-len(suffix)-1, whole) + "-" + suffix
}

// LabelValue returns the name as the value of a label, whose maximum length is shorter than that of a name.
func LabelValue(name string) string {
	if len(name) <= maxName {
		return name
	}
	return shortened(name, maxName, name)
}

// hashLength is how many hexadecimal digits distinguish two names with the same beginning.
const hashLength = 10

func shortened(text string, limit int, whole string) string {
	sum := sha256.Sum256([]byte(whole))
	text = text[:min(len(text), limit-hashLength-1)]
	return strings.TrimRight(text, "-._") + "-" + hex.EncodeToString(sum[:])[:hashLength]
}
