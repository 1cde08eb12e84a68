package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	magalixv1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	pocv1 "github.com/mysql-operator/mysql-operator/schema/poc/v1"
	pulsarv1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
	schedulev1 "github.com/mysql-operator/mysql-operator/schema/schedule/v1"
	vmgroupv1alpha1 "github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// goTypes are the Go types of the kinds, by kind. A kind without a type fails TestTypesAndDefinitionsAgree.
func goTypes() map[string]reflect.Type {
	return map[string]reflect.Type{
		"MySQLCluster":        reflect.TypeFor[mysqlv1.MySQLCluster](),
		"MySQLBackupSchedule": reflect.TypeFor[mysqlv1.MySQLBackupSchedule](),
		"MySQLBackupInstance": reflect.TypeFor[mysqlv1.MySQLBackupInstance](),
		"ConfigMonitor":       reflect.TypeFor[magalixv1.ConfigMonitor](),
		"MyCustomResource":    reflect.TypeFor[pocv1.MyCustomResource](),
		"TDSet":               reflect.TypeFor[schedulev1.TDSet](),
		"PulsarConsumer":      reflect.TypeFor[pulsarv1.PulsarConsumer](),
		"VmGroup":             reflect.TypeFor[vmgroupv1alpha1.VmGroup](),
	}
}

// TestTypesAndDefinitionsAgree compares each Go type with its definition: every field is in both, with the same type of value. The
// definition requires each field that the code expects (a field without omitempty).
func TestTypesAndDefinitionsAgree(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		t.Run(kind.Kind, func(t *testing.T) {
			t.Parallel()
			goType, known := goTypes()[kind.Kind]
			if !known {
				t.Fatalf("%s has no Go type in goTypes", kind.Kind)
			}
			for _, version := range typedDefinition(t, kind).Spec.Versions {
				for _, fault := range compare(goType, version.Schema.OpenAPIV3Schema, kind.Kind) {
					t.Error(fault)
				}
			}
		})
	}
}

// TestComparisonNoticesDifferences checks that TestTypesAndDefinitionsAgree finds every possible difference between a type and a schema.
func TestComparisonNoticesDifferences(t *testing.T) {
	t.Parallel()
	text, number := apiextensionsv1.JSONSchemaProps{Type: "string"}, apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32"}
	object := func(fields map[string]apiextensionsv1.JSONSchemaProps, required ...string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields, Required: required}
	}
	type narrow struct {
		Name string `json:"name"`
	}
	for name, test := range map[string]struct {
		goType any
		schema apiextensionsv1.JSONSchemaProps
		want   int
	}{
		"same":                      {narrow{}, object(map[string]apiextensionsv1.JSONSchemaProps{"name": text}, "name"), 0},
		"only in the schema":        {narrow{}, object(map[string]apiextensionsv1.JSONSchemaProps{"name": text, "size": number}, "name"), 1},
		"only in the type":          {narrow{}, object(nil), 1},
		"another type":              {narrow{}, object(map[string]apiextensionsv1.JSONSchemaProps{"name": number}, "name"), 1},
		"another width":             {struct{ N int64 }{}, object(map[string]apiextensionsv1.JSONSchemaProps{"N": number}), 1},
		"not required":              {narrow{}, object(map[string]apiextensionsv1.JSONSchemaProps{"name": text}), 1},
		"a map where a struct was":  {narrow{}, apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}}, 2},
		"a list of something else":  {[]string{}, apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &number}}, 1},
		"a list without items":      {[]string{}, apiextensionsv1.JSONSchemaProps{Type: "array"}, 1},
		"an unsupported type":       {make(chan int), text, 1},
		"a quantity that is a text": {resource.Quantity{}, text, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if faults := compare(reflect.TypeOf(test.goType), &test.schema, "it"); len(faults) != test.want {
				t.Errorf("found %d differences, want %d: %v", len(faults), test.want, faults)
			}
		})
	}
}

// compare returns the differences between the Go type and the schema at path.
func compare(goType reflect.Type, props *apiextensionsv1.JSONSchemaProps, path string) []string {
	for goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	switch goType {
	case reflect.TypeFor[resource.Quantity]():
		return expect(path, "int-or-string", props.XIntOrString, true)
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[mysqlv1.MicroTime]():
		return expect(path, "format", props.Format, "date-time")
	case reflect.TypeFor[metav1.ObjectMeta]():
		return expect(path, "type", props.Type, "object")
	}

	switch goType.Kind() {
	case reflect.Slice, reflect.Map, reflect.Struct:
		return compareComposite(goType, props, path)
	case reflect.String:
		return expect(path, "type", props.Type, "string")
	case reflect.Bool:
		return expect(path, "type", props.Type, "boolean")
	case reflect.Int32, reflect.Int64:
		return append(expect(path, "type", props.Type, "integer"), expect(path, "format", props.Format, goType.Kind().String())...)
	default:
		return []string{fmt.Sprintf("%s: a %s does not belong in a kind's type", path, goType)}
	}
}

func compareComposite(goType reflect.Type, props *apiextensionsv1.JSONSchemaProps, path string) []string {
	switch goType.Kind() {
	case reflect.Slice:
		if props.Items == nil || props.Items.Schema == nil {
			return []string{path + ": the definition has no items"}
		}
		return append(expect(path, "type", props.Type, "array"), compare(goType.Elem(), props.Items.Schema, path+"[]")...)
	case reflect.Map:
		if props.AdditionalProperties == nil || props.AdditionalProperties.Schema == nil {
			return []string{path + ": the definition has no additionalProperties"}
		}
		return append(expect(path, "type", props.Type, "object"), compare(goType.Elem(), props.AdditionalProperties.Schema, path+"{}")...)
	default:
		return compareFields(goType, props, path)
	}
}

func compareFields(goType reflect.Type, props *apiextensionsv1.JSONSchemaProps, path string) []string {
	faults := expect(path, "type", props.Type, "object")
	if props.AdditionalProperties != nil {
		faults = append(faults, path+": the definition is a map, the type a struct")
	}
	fields := jsonFields(goType)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		property, found := props.Properties[name]
		if !found {
			faults = append(faults, path+"."+name+": only the Go type has it")
			continue
		}
		faults = append(faults, compare(fields[name].Type, &property, path+"."+name)...)
		if mustBeRequired(fields[name], property) && !slices.Contains(props.Required, name) && !strings.Contains(path, ".status") {
			faults = append(faults, path+"."+name+": the Go type always has it, but the definition does not require it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
		if _, found := fields[name]; !found {
			faults = append(faults, path+"."+name+": only the definition has it")
		}
	}
	return faults
}

// mustBeRequired reports whether the Go type relies on the field: it has no omitempty or omitzero, so its zero value has a meaning.
func mustBeRequired(field reflect.StructField, property apiextensionsv1.JSONSchemaProps) bool {
	tag := field.Tag.Get("json")
	return tag != "" && !strings.Contains(tag, "omit") && property.Default == nil
}

// jsonFields returns the fields by their JSON names, including those of inlined structs.
func jsonFields(goType reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for _, field := range reflect.VisibleFields(goType) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if options == "inline" || isPromoted(goType, field) {
			continue
		}
		if name == "" {
			name = field.Name
		}
		fields[name] = field
	}
	return fields
}

// isPromoted reports whether the field belongs to an embedded struct with its own name in JSON, such as metadata. It is compared there.
func isPromoted(goType reflect.Type, field reflect.StructField) bool {
	return len(field.Index) > 1 && goType.Field(field.Index[0]).Tag.Get("json") != ",inline"
}

func expect[T comparable](path, what string, got, want T) []string {
	if got == want {
		return nil
	}
	return []string{fmt.Sprintf("%s: the definition's %s is %v, the Go type needs %v", path, what, got, want)}
}
