package crds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

const (
	typeObject      = "object"
	typeInteger     = "integer"
	typeString      = "string"
	typeIntOrString = "integer or string"
	typeAny         = "any"
)

func typeOf(schema *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case schema.XIntOrString:
		return typeIntOrString
	case schema.Type == "":
		return typeAny
	default:
		return schema.Type
	}
}

// isWider says that every value of the one type is a value of the other.
func isWider(before, after string) bool {
	switch after {
	case typeAny:
		return true
	case "number":
		return before == typeInteger
	case typeIntOrString:
		return before == typeInteger || before == typeString
	default:
		return false
	}
}

// values compares what a single value may be.
func (c *comparison) values(path string, has, wants *apiextensionsv1.JSONSchemaProps) {
	if has.Nullable != wants.Nullable {
		c.add(path, map[bool]string{true: "nullable no more", false: "nullable now"}[has.Nullable], has.Nullable)
	}
	c.text(path, "format", has.Format, wants.Format)
	c.text(path, "pattern", has.Pattern, wants.Pattern)
	c.limit(path, "maximum", upper{has.Maximum, has.ExclusiveMaximum}, upper{wants.Maximum, wants.ExclusiveMaximum})
	c.limit(path, "minimum", lower{has.Minimum, has.ExclusiveMinimum}, lower{wants.Minimum, wants.ExclusiveMinimum})
	c.limit(path, "maxLength", most(has.MaxLength), most(wants.MaxLength))
	c.limit(path, "minLength", least(has.MinLength), least(wants.MinLength))
	c.limit(path, "maxItems", most(has.MaxItems), most(wants.MaxItems))
	c.limit(path, "minItems", least(has.MinItems), least(wants.MinItems))
	c.limit(path, "maxProperties", most(has.MaxProperties), most(wants.MaxProperties))
	c.limit(path, "minProperties", least(has.MinProperties), least(wants.MinProperties))
	c.text(path, "multipleOf", number(has.MultipleOf), number(wants.MultipleOf))
	if has.UniqueItems != wants.UniqueItems {
		c.add(path, map[bool]string{true: "items must be unique now", false: "items may repeat now"}[wants.UniqueItems], wants.UniqueItems)
	}
	c.enum(path, has.Enum, wants.Enum)
	c.defaults(path, has.Default, wants.Default)
}

// text compares a constraint of which one can only tell that it is another.
func (c *comparison) text(path, name, has, wants string) {
	switch {
	case has == wants:
	case has == "":
		c.add(path, name+" "+wants+" added", true)
	case wants == "":
		c.add(path, name+" "+has+" removed", false)
	default:
		c.add(path, name+" "+has+" → "+wants, name != "format" || has != "int32" || wants != "int64")
	}
}

// bound is a limit of numbers.
type bound interface {
	// admitsAll says that there is no limit.
	admitsAll() bool
	// admits says that whatever the other admits this one does too.
	admits(other bound) bool
	String() string
}

// upper is a largest number; nil is none.
type upper struct {
	value     *float64
	exclusive bool
}

func (u upper) admitsAll() bool { return u.value == nil }

func (u upper) admits(other bound) bool {
	than, same := other.(upper)
	if !same || u.admitsAll() || than.admitsAll() {
		return u.admitsAll()
	}
	return *u.value > *than.value || (*u.value == *than.value && (!u.exclusive || than.exclusive))
}

func (u upper) String() string {
	return map[bool]string{true: "below "}[u.exclusive] + number(u.value)
}

// lower is a smallest number; nil is none.
type lower struct {
	value     *float64
	exclusive bool
}

func (l lower) admitsAll() bool { return l.value == nil }

func (l lower) admits(other bound) bool {
	than, same := other.(lower)
	if !same || l.admitsAll() || than.admitsAll() {
		return l.admitsAll()
	}
	return *l.value < *than.value || (*l.value == *than.value && (!l.exclusive || than.exclusive))
}

func (l lower) String() string {
	return map[bool]string{true: "above "}[l.exclusive] + number(l.value)
}

func most(count *int64) bound {
	if count == nil {
		return upper{}
	}
	return upper{value: new(float64(*count))}
}

// least is a smallest count. No count is below 0, so that 0 is none.
func least(count *int64) bound {
	if ptr.Deref(count, 0) == 0 {
		return lower{}
	}
	return lower{value: new(float64(*count))}
}

func (c *comparison) limit(path, name string, has, wants bound) {
	switch {
	case has.admits(wants) && wants.admits(has):
	case has.admitsAll():
		c.add(path, fmt.Sprintf("%s %s added", name, wants), true)
	case wants.admitsAll():
		c.add(path, fmt.Sprintf("%s %s removed", name, has), false)
	default:
		c.add(path, fmt.Sprintf("%s %s → %s", name, has, wants), !wants.admits(has))
	}
}

func (c *comparison) enum(path string, has, wants []apiextensionsv1.JSON) {
	before, after := canonicals(has), canonicals(wants)
	switch {
	case len(before) == 0 && len(after) == 0:
	case len(before) == 0:
		c.add(path, "only these values are allowed now: "+strings.Join(after, ", "), true)
	case len(after) == 0:
		c.add(path, "any value allowed now", false)
	default:
		for _, value := range before {
			if !slices.Contains(after, value) {
				c.add(path, "value "+value+" no longer allowed", true)
			}
		}
		for _, value := range after {
			if !slices.Contains(before, value) {
				c.add(path, "value "+value+" allowed now", false)
			}
		}
	}
}

// defaults compares what a field that is left out means.
func (c *comparison) defaults(path string, has, wants *apiextensionsv1.JSON) {
	changed := difference{path: path, breaking: true, defaulting: true}
	switch {
	case has == nil && wants == nil:
		return
	case has == nil:
		changed.what, changed.added = fmt.Sprintf("default %s added", short(canonical(*wants))), true
	case wants == nil:
		changed.what = fmt.Sprintf("default %s removed", short(canonical(*has)))
	case canonical(*has) == canonical(*wants):
		return
	default:
		changed.what = fmt.Sprintf("default %s → %s", short(canonical(*has)), short(canonical(*wants)))
	}
	c.found = append(c.found, changed)
}

// extensions compares what Kubernetes adds to OpenAPI, but for types and rules.
func (c *comparison) extensions(path string, has, wants *apiextensionsv1.JSONSchemaProps) {
	if has.XEmbeddedResource != wants.XEmbeddedResource {
		c.add(path, map[bool]string{true: "a whole embedded object now", false: "no longer a whole embedded object"}[wants.XEmbeddedResource], true)
	}
	if before, after := ptr.Deref(has.XListType, "atomic"), ptr.Deref(wants.XListType, "atomic"); before != after {
		c.add(path, "list type "+before+" → "+after, true)
	}
	if before, after := strings.Join(has.XListMapKeys, ", "), strings.Join(wants.XListMapKeys, ", "); before != after {
		c.add(path, "list keys "+orNone(before)+" → "+orNone(after), true)
	}
	if before, after := ptr.Deref(has.XMapType, "granular"), ptr.Deref(wants.XMapType, "granular"); before != after {
		c.add(path, "map type "+before+" → "+after, true)
	}
}

// combinations compares allOf, anyOf, oneOf and not. Whether one admits more than another is not decided here: any difference counts.
func (c *comparison) combinations(path string, has, wants *apiextensionsv1.JSONSchemaProps) {
	for _, combination := range []struct {
		name       string
		has, wants []apiextensionsv1.JSONSchemaProps
	}{
		{"allOf", has.AllOf, wants.AllOf},
		{"anyOf", withoutIntOrString(has), withoutIntOrString(wants)},
		{"oneOf", has.OneOf, wants.OneOf},
		{"not", listOf(has.Not), listOf(wants.Not)},
	} {
		before, after := plainAll(combination.has), plainAll(combination.wants)
		switch {
		case equality.Semantic.DeepEqual(before, after):
		case len(before) == 0:
			c.add(path, combination.name+" added", true)
		case len(after) == 0:
			c.add(path, combination.name+" removed", true)
		default:
			c.add(path, combination.name+" changed", true)
		}
	}
}

// rules compares validation rules by what they say, not by how they explain it.
func (c *comparison) rules(path string, has, wants apiextensionsv1.ValidationRules) {
	removed := slices.DeleteFunc(slices.Clone(has), func(rule apiextensionsv1.ValidationRule) bool { return containsRule(wants, rule) })
	added := slices.DeleteFunc(slices.Clone(wants), func(rule apiextensionsv1.ValidationRule) bool { return containsRule(has, rule) })
	for _, rule := range added {
		same := func(other apiextensionsv1.ValidationRule) bool { return ruleText(other) == ruleText(rule) }
		if at := slices.IndexFunc(removed, same); at >= 0 {
			removed = slices.Delete(removed, at, at+1)
			c.add(path, "validation rule changed: "+ruleText(rule), true)
			continue
		}
		c.add(path, "validation rule added: "+ruleText(rule), true)
	}
	for _, rule := range removed {
		c.add(path, "validation rule removed: "+ruleText(rule), false)
	}
}

func containsRule(rules apiextensionsv1.ValidationRules, rule apiextensionsv1.ValidationRule) bool {
	return slices.ContainsFunc(rules, func(other apiextensionsv1.ValidationRule) bool {
		return strings.TrimSpace(other.Rule) == strings.TrimSpace(rule.Rule) && ptr.Deref(other.OptionalOldSelf, false) == ptr.Deref(rule.OptionalOldSelf, false)
	})
}

func ruleText(rule apiextensionsv1.ValidationRule) string {
	if rule.Message != "" {
		return strings.TrimSpace(rule.Message)
	}
	return strings.TrimSpace(rule.Rule)
}

func listOf(schema *apiextensionsv1.JSONSchemaProps) []apiextensionsv1.JSONSchemaProps {
	if schema == nil {
		return nil
	}
	return []apiextensionsv1.JSONSchemaProps{*schema}
}

// withoutIntOrString returns anyOf without the one that only repeats what int-or-string says.
func withoutIntOrString(schema *apiextensionsv1.JSONSchemaProps) []apiextensionsv1.JSONSchemaProps {
	repeats := []apiextensionsv1.JSONSchemaProps{{Type: typeInteger}, {Type: typeString}}
	if schema.XIntOrString && equality.Semantic.DeepEqual(schema.AnyOf, repeats) {
		return nil
	}
	return schema.AnyOf
}

func plainAll(schemas []apiextensionsv1.JSONSchemaProps) []apiextensionsv1.JSONSchemaProps {
	plain := make([]apiextensionsv1.JSONSchemaProps, 0, len(schemas))
	for _, schema := range schemas {
		copied := schema.DeepCopy()
		strip(copied)
		plain = append(plain, *copied)
	}
	return plain
}

// strip removes what only people read.
func strip(schema *apiextensionsv1.JSONSchemaProps) {
	schema.Description, schema.Title, schema.Example, schema.ExternalDocs = "", "", nil, nil
	for _, list := range [][]apiextensionsv1.JSONSchemaProps{schema.AllOf, schema.AnyOf, schema.OneOf} {
		for at := range list {
			strip(&list[at])
		}
	}
	for name := range schema.Properties {
		field := schema.Properties[name]
		strip(&field)
		schema.Properties[name] = field
	}
	if schema.Not != nil {
		strip(schema.Not)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		strip(schema.AdditionalProperties.Schema)
	}
	if items := elementOf(schema); items != nil {
		strip(items)
	}
}

// canonical writes a JSON value in one way only.
func canonical(value apiextensionsv1.JSON) string {
	var decoded any
	reader := json.NewDecoder(bytes.NewReader(value.Raw))
	reader.UseNumber()
	if err := reader.Decode(&decoded); err != nil {
		return string(value.Raw) // not JSON: it can only be compared as it is
	}
	encoded, err := json.Marshal(decoded)
	if err != nil {
		return string(value.Raw)
	}
	return string(encoded)
}

func canonicals(values []apiextensionsv1.JSON) []string {
	texts := make([]string, 0, len(values))
	for _, value := range values {
		texts = append(texts, canonical(value))
	}
	return texts
}

// short cuts a value that is too long to be read in a line.
func short(text string) string {
	const most = 80
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}

// number writes a number as people do; empty for none.
func number(value *float64) string {
	if value == nil {
		return ""
	}
	return strconv.FormatFloat(*value, 'f', -1, 64)
}
