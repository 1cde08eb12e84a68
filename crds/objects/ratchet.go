package objects

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// added returns what is refused now and was not before. As with the API server's ratcheting (KEP-4008), a value that was already invalid is
// not reported, even if it is refused for another reason. For a map or list only the same refusal counts as old, because another refusal
// may be about another part of it.
func added(content map[string]any, now, before field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(now, func(refusal *field.Error) bool {
		return slices.ContainsFunc(before, func(old *field.Error) bool { return isOld(content, refusal, old) })
	})
}

func isOld(content map[string]any, refusal, old *field.Error) bool {
	if refusal.Error() == old.Error() {
		return true
	}
	if refusal.Field != old.Field {
		return false
	}
	sameKind := refusal.Type == old.Type && (refusal.Type == field.ErrorTypeTooMany || refusal.Type == field.ErrorTypeTypeInvalid)
	return sameKind || isScalarAt(content, refusal.Field)
}

// blocksRules reports whether the API server evaluates no rules after a refusal for this reason (hasBlockingErr of
// k8s.io/apiextensions-apiserver): a rule may not be written for such values.
func blocksRules(refusal *field.Error) bool {
	switch refusal.Type { //nolint:exhaustive // after other refusals the API server evaluates the rules
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	default:
		return false
	}
}

// isScalarAt reports whether the value at the path exists and is neither a map nor a list. Paths have the form of those in errors: spec.a,
// spec.a[0].b, spec.a[key].
func isScalarAt(value any, path string) bool {
	switch value := value.(type) {
	case map[string]any:
		for name, item := range value {
			for _, step := range []string{name, "." + name, "[" + name + "]"} {
				if rest, found := strings.CutPrefix(path, step); found && isScalarAt(item, rest) {
					return true
				}
			}
		}
		return false
	case []any:
		for at, item := range value {
			if rest, found := strings.CutPrefix(path, fmt.Sprintf("[%d]", at)); found {
				return isScalarAt(item, rest)
			}
		}
		return false
	default:
		return path == ""
	}
}
