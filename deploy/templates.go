package deploy

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/mysql-operator/mysql-operator/schema"
)

// templateRules are the rules about other parts of workloads: which Pods they select, which other objects may select their Pods, and
// whether claims are kept.
func templateRules() []admissionv1.Validation {
	metadata := func(field string) (is, was string) {
		return "object.spec.template.?metadata.?" + field, "(oldObject == null ? optional.none() : oldObject.spec.template.?metadata.?" + field + ")"
	}
	annotations, annotationsBefore := metadata("annotations")
	labels, labelsBefore := metadata("labels")
	return []admissionv1.Validation{
		validation(allowedOrSameKeys(annotations, annotationsBefore, "key.startsWith('"+restartPrefix+"')"),
			"the operator adds no annotations to its Pods: webhooks that inject containers act on some annotations"),
		validation(allowedOrSameKeys(labels, labelsBefore, isOwnLabel(labels)),
			"the operator's Pods have only its own labels: with others, a user's Service or NetworkPolicy could select them"),
		validation("request.resource.resource == 'jobs' ? !object.spec.?manualSelector.orValue(false) : ("+selectsOwn("object.spec.?selector")+
			" || (oldObject != null && object.spec.selector == oldObject.spec.selector))",
			"the operator's workloads adopt no Pods that another client made"),
		validation("request.resource.resource != 'statefulsets' || object.spec.?serviceName.orValue('') == object.metadata.name + '-pods' || "+
			"(oldObject != null && object.spec.?serviceName == oldObject.spec.?serviceName)",
			"the Service of the operator's StatefulSets is NAME-pods: with another one, their Pods could take the DNS names of other Pods"),
		validation("request.resource.resource != 'statefulsets' || ["+retention("whenDeleted")+", "+retention("whenScaled")+"].all(kept, kept)",
			"the operator's StatefulSets keep their claims"),
		validation("request.resource.resource != 'statefulsets' || "+
			"(oldObject != null && object.spec.?volumeClaimTemplates.orValue([]) == oldObject.spec.?volumeClaimTemplates.orValue([])) || "+
			"object.spec.?volumeClaimTemplates.orValue([]).all(c, "+isNewClaim("dyn(c)", "dyn({})")+
			" && c.metadata.?annotations.orValue({}).size() == 0 && c.metadata.?ownerReferences.orValue([]).size() == 0)",
			"the claims of the operator's Pods are new and empty"),
	}
}

// retention returns an expression: a StatefulSet that is deleted, or scaled in, keeps its claims, or its policy does not change.
func retention(when string) string {
	field := "spec.?persistentVolumeClaimRetentionPolicy.?" + when
	return fmt.Sprintf("(object.%[1]s.orValue('Retain') == 'Retain' || (oldObject != null && oldObject.%[1]s == object.%[1]s))", field)
}

// isOwnLabel returns an expression: a key of a Pod's labels is one that the operator, or the controller of its Jobs, adds to Pods.
func isOwnLabel(labels string) string {
	keys := "key in ['app.kubernetes.io/instance', '" + OwnerLabel + "', 'azure.workload.identity/use', 'controller-uid', 'job-name']"
	name := "(key == 'app.kubernetes.io/name' && " + labels + "[?key].orValue('') in ['mysql', 'mysql-backup', 'pulsar-consumer', 'tdset'])"
	return strings.Join([]string{keys, name, "key.startsWith('" + ownPrefix + "')", "key.startsWith('batch.kubernetes.io/')"}, " || ")
}

// ownPrefix is the prefix of the operator's own labels.
const ownPrefix = schema.MySQLGroup + "/"

// selectsOwn returns an expression: a selector selects only Pods with the operator's label.
func selectsOwn(selector string) string {
	return fmt.Sprintf("%s.?matchLabels[?'%s'].orValue('') == '%s'", selector, OwnerLabel, Name)
}

// isNewClaim returns an expression: a claim requests a new volume, or what it requested before.
func isNewClaim(claim, before string) string {
	return ofEach(claim+".spec.?%[1]s == "+before+".?spec.?%[1]s", "volumeName", "dataSource", "dataSourceRef", "selector", "volumeAttributesClassName")
}
