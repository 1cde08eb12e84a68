package crds

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// The fields that every object has.
const (
	fieldAPIVersion = "apiVersion"
	fieldKind       = "kind"
	fieldMetadata   = "metadata"
)

// difference is a Change that does not know its version yet. A defaulting one is felt only where the field is left out.
type difference struct {
	path, what           string
	breaking, defaulting bool
	// added says that there is a default where there was none.
	added bool
}

// comparison walks two structural schemas side by side and collects what differs.
type comparison struct {
	found []difference
}

// schemaDifferences compares the schemas of one API version, or of two that objects have to fit without conversion. No schema at all
// means that everything is accepted and kept.
func schemaDifferences(has, wants *apiextensionsv1.JSONSchemaProps) []difference {
	all := &apiextensionsv1.JSONSchemaProps{Type: typeObject, XPreserveUnknownFields: new(true)}
	if has == nil {
		has = all
	}
	if wants == nil {
		wants = all
	}
	compared := &comparison{}
	compared.schemas("", withImplied("", has), withImplied("", wants))
	return compared.found
}

func (c *comparison) add(path, what string, breaking bool) {
	c.found = append(c.found, difference{path: path, what: what, breaking: breaking})
}

func (c *comparison) schemas(path string, has, wants *apiextensionsv1.JSONSchemaProps) {
	if before, after := typeOf(has), typeOf(wants); before != after {
		wider := isWider(before, after)
		c.add(path, "type "+before+" → "+after, !wider)
		if !wider {
			return // nothing below can be compared any more
		}
	}
	c.values(path, has, wants)
	c.extensions(path, has, wants)
	c.combinations(path, has, wants)
	c.rules(path, has.XValidations, wants.XValidations)
	c.required(path, has, wants)
	c.properties(path, has, wants)
	c.others(path, has, wants)
	c.items(path, has, wants)
	c.rest(path, has, wants)
}

// required compares which fields must be there. A field with a default always is.
func (c *comparison) required(path string, has, wants *apiextensionsv1.JSONSchemaProps) {
	for _, name := range wants.Required {
		if slices.Contains(has.Required, name) {
			continue
		}
		if field, found := wants.Properties[name]; found && field.Default != nil {
			c.add(childOf(path, name), "now required, and filled in by its default", false)
			continue
		}
		c.add(childOf(path, name), "now required", true)
	}
	for _, name := range has.Required {
		if !slices.Contains(wants.Required, name) {
			c.add(childOf(path, name), "no longer required", false)
		}
	}
}

// properties compares the fields that one of the two names.
func (c *comparison) properties(path string, has, wants *apiextensionsv1.JSONSchemaProps) {
	names := map[string]bool{}
	for name := range maps.Keys(has.Properties) {
		names[name] = true
	}
	for name := range maps.Keys(wants.Properties) {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		field := childOf(path, name)
		former, latter := memberOf(has, name), memberOf(wants, name)
		switch {
		case former == nil:
			c.add(field, "field added", false)
		case latter == nil:
			c.add(field, "field removed", true)
		default:
			c.described(field, former, latter)
		}
	}
}

// others compares what becomes of fields that have no name in the schema.
func (c *comparison) others(path string, has, wants *apiextensionsv1.JSONSchemaProps) {
	former, latter := othersOf(has), othersOf(wants)
	switch {
	case former == nil && latter == nil:
	case former == nil:
		c.add(path, "fields of any name kept now", false)
	case latter == nil:
		c.add(path, "unknown fields no longer kept", true)
	default:
		c.described(childOf(path, "*"), former, latter)
	}
}

// described compares two schemas of which either may say no more than that anything is accepted.
func (c *comparison) described(path string, has, wants *apiextensionsv1.JSONSchemaProps) {
	before, after := isAnything(has), isAnything(wants)
	switch {
	case before && after:
		if keepsUnknown(has) && !keepsUnknown(wants) {
			c.add(path, "unknown fields no longer kept", true)
		}
	case before:
		c.add(path, "described now: what does not fit is dropped or refused", true)
	case after:
		c.add(path, "no longer described: anything is accepted", !keepsUnknown(wants) || hasDefault(has))
	default:
		c.schemas(path, withImplied(path, has), withImplied(path, wants))
	}
}

func (c *comparison) items(path string, has, wants *apiextensionsv1.JSONSchemaProps) {
	former, latter := elementOf(has), elementOf(wants)
	if former == nil && latter == nil {
		return
	}
	anything := &apiextensionsv1.JSONSchemaProps{}
	if former == nil {
		former = anything
	}
	if latter == nil {
		latter = anything
	}
	c.described(path+"[]", former, latter)
}

// rest notices what nothing above compares, so that what Kubernetes adds to schemas one day is not overlooked.
func (c *comparison) rest(path string, has, wants *apiextensionsv1.JSONSchemaProps) {
	if !equality.Semantic.DeepEqual(uncompared(has), uncompared(wants)) {
		c.add(path, "schema changed in a way that is not told apart", true)
	}
}

// uncompared returns what is left of a schema without all that is compared elsewhere or does not matter.
func uncompared(schema *apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	left := *schema
	left.Description, left.Title, left.Example, left.ExternalDocs, left.ID, left.Schema = "", "", nil, nil, "", ""
	left.Type, left.Format, left.Nullable, left.Default, left.Enum, left.Pattern = "", "", false, nil, nil, ""
	left.Maximum, left.ExclusiveMaximum, left.Minimum, left.ExclusiveMinimum, left.MultipleOf = nil, false, nil, false, nil
	left.MaxLength, left.MinLength, left.MaxItems, left.MinItems, left.MaxProperties, left.MinProperties = nil, nil, nil, nil, nil, nil
	left.UniqueItems, left.Required, left.Properties, left.AdditionalProperties = false, nil, nil, nil
	left.AllOf, left.AnyOf, left.OneOf, left.Not, left.XValidations = nil, nil, nil, nil, nil
	left.XPreserveUnknownFields, left.XEmbeddedResource, left.XIntOrString = nil, false, false
	left.XListType, left.XListMapKeys, left.XMapType = nil, nil, nil
	if left.Items != nil && len(left.Items.JSONSchemas) == 0 {
		left.Items = nil
	}
	return left
}

// memberOf returns the schema of the named field: its own, or that of fields of any name; nil if it is dropped.
func memberOf(schema *apiextensionsv1.JSONSchemaProps, name string) *apiextensionsv1.JSONSchemaProps {
	if field, found := schema.Properties[name]; found {
		return &field
	}
	return othersOf(schema)
}

// othersOf returns the schema of fields that have no name in the schema; nil if they are dropped.
func othersOf(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	others := schema.AdditionalProperties
	switch {
	case others != nil && others.Schema != nil:
		return others.Schema
	case keepsUnknown(schema):
		return &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}
	case others != nil && others.Allows:
		return &apiextensionsv1.JSONSchemaProps{} // the value is kept, but fields within it are not
	default:
		return nil
	}
}

func elementOf(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if schema.Items == nil {
		return nil
	}
	return schema.Items.Schema
}

// withImplied adds the fields that every object has (and every embedded one), whether its schema names them or not.
func withImplied(path string, schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if path != "" && !schema.XEmbeddedResource {
		return schema
	}
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	complete := *schema
	complete.Properties = map[string]apiextensionsv1.JSONSchemaProps{fieldAPIVersion: text, fieldKind: text, fieldMetadata: {Type: typeObject}}
	maps.Copy(complete.Properties, schema.Properties)
	metadata := complete.Properties[fieldMetadata]
	named := map[string]apiextensionsv1.JSONSchemaProps{"name": text, "generateName": text}
	maps.Copy(named, metadata.Properties)
	metadata.Properties = named
	complete.Properties[fieldMetadata] = metadata
	return &complete
}

func keepsUnknown(schema *apiextensionsv1.JSONSchemaProps) bool {
	return ptr.Deref(schema.XPreserveUnknownFields, false)
}

// isAnything says that the schema says nothing about the value.
func isAnything(schema *apiextensionsv1.JSONSchemaProps) bool {
	said := *schema
	said.Description, said.Title, said.Example, said.ExternalDocs, said.XPreserveUnknownFields = "", "", nil, nil, nil
	return equality.Semantic.DeepEqual(said, apiextensionsv1.JSONSchemaProps{})
}

func hasDefault(schema *apiextensionsv1.JSONSchemaProps) bool {
	if schema.Default != nil {
		return true
	}
	for name := range schema.Properties {
		if field := schema.Properties[name]; hasDefault(&field) {
			return true
		}
	}
	if others := schema.AdditionalProperties; others != nil && others.Schema != nil && hasDefault(others.Schema) {
		return true
	}
	items := elementOf(schema)
	return items != nil && hasDefault(items)
}

func childOf(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
