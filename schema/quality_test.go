package schema

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestDefinitionsReadWell checks what users see of definitions in kubectl explain, kubectl get and error messages.
func TestDefinitionsReadWell(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		t.Run(kind.Kind, func(t *testing.T) {
			t.Parallel()
			definition := typedDefinition(t, kind)
			if definition.Name != kind.DefinitionName() || definition.Spec.Names.Kind != kind.Kind || definition.Spec.Group != kind.Group {
				t.Errorf("the file defines %s (%s), the table says %s (%s)", definition.Name, definition.Spec.Names.Kind, kind.DefinitionName(), kind.Kind)
			}
			if len(definition.Spec.Names.ShortNames) == 0 {
				t.Error("no short name")
			}
			used := func(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return version.Name == kind.Version && version.Served && version.Storage
			}
			if !slices.ContainsFunc(definition.Spec.Versions, used) {
				t.Errorf("version %s of the table is not the one served and stored", kind.Version)
			}
			for _, version := range definition.Spec.Versions {
				checkVersion(t, version)
			}
		})
	}
}

func checkVersion(t *testing.T, version apiextensionsv1.CustomResourceDefinitionVersion) {
	t.Helper()
	if version.Subresources == nil || version.Subresources.Status == nil {
		t.Errorf("%s has no status subresource: the operator's status writes would change the generation", version.Name)
	}
	// Tools that use kstatus consider an object without a status as reconciled.
	if status := version.Schema.OpenAPIV3Schema.Properties["status"]; status.Default == nil || string(status.Default.Raw) != `{"observedGeneration":-1}` {
		t.Errorf("%s: the default of status is %v, want an observedGeneration of -1", version.Name, status.Default)
	}
	for _, column := range version.AdditionalPrinterColumns {
		if column.Description == "" {
			t.Errorf("column %s has no description", column.Name)
		}
	}
	for _, fault := range faultsOf(version.Schema.OpenAPIV3Schema, "") {
		t.Error(fault)
	}
}

// TestDefinitionsStaySmall keeps every definition far below 256 KiB. kubectl's client-side apply stores the object in an annotation, as
// JSON, and 256 KiB is the limit for annotations (ValidateAnnotationsSize in k8s.io/apimachinery).
func TestDefinitionsStaySmall(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		document, err := Definition(kind)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := yaml.YAMLToJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		if limit := 48 * 1024; len(stored) > limit {
			t.Errorf("the definition of %s has %d bytes as JSON, more than %d", kind.Kind, len(stored), limit)
		}
	}
}

// literalPattern matches a regular expression that is one literal, which CEL compiles once. CEL compiles a concatenated expression, even
// one of constants ('a|' + 'b'), again for every name and value of every object that is written.
var literalPattern = regexp.MustCompile(`\bmatches\('[^']*'\)`)

// faultsOf returns the fields without description, and the rules whose message says too little or that cost too much.
func faultsOf(props *apiextensionsv1.JSONSchemaProps, path string) []string {
	faults := []string{}
	if props.Description == "" && path != ".metadata" {
		faults = append(faults, path+" has no description")
	}
	for _, rule := range props.XValidations {
		faults = append(faults, faultsOfRule(rule, path)...)
	}
	for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
		property := props.Properties[name]
		faults = append(faults, faultsOf(&property, path+"."+name)...)
	}
	if props.Items != nil && props.Items.Schema != nil {
		faults = append(faults, faultsOf(props.Items.Schema, path+"[]")...)
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		faults = append(faults, faultsOf(props.AdditionalProperties.Schema, path+"{}")...)
	}
	return faults
}

func faultsOfRule(rule apiextensionsv1.ValidationRule, path string) []string {
	faults := []string{}
	if !strings.Contains(rule.Message, "spec.") && !strings.Contains(rule.Message, "metadata.") {
		faults = append(faults, path+": the message of rule "+rule.Rule+" names no field")
	}
	if strings.Contains(rule.Message, "\n") {
		faults = append(faults, path+": the message of rule "+rule.Rule+" has more than one line")
	}
	if strings.Count(rule.Rule, "matches(") != len(literalPattern.FindAllString(rule.Rule, -1)) {
		faults = append(faults, path+": rule "+rule.Rule+" puts a regular expression together: write it as one literal")
	}
	return faults
}
