package schema

import (
	"embed"
	"fmt"
	"path"
)

// definitions holds the files of the CustomResourceDefinitions: <group folder>/<version>/<plural>.<group>.yaml.
//
//go:embed */*/*.yaml
var definitions embed.FS

// Definition returns the YAML of the kind's CustomResourceDefinition, byte for byte as in the source. It fails only if the table has a kind
// without exactly one file.
func Definition(kind Kind) ([]byte, error) {
	found, err := definitionFiles(kind)
	if err != nil {
		return nil, fmt.Errorf("find the definition of %s: %w", kind.Kind, err)
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("find the definition of %s: %d files are named %s.yaml: exactly one must be", kind.Kind, len(found), kind.DefinitionName())
	}
	document, err := definitions.ReadFile(found[0])
	if err != nil {
		return nil, fmt.Errorf("read the definition of %s: %w", kind.Kind, err)
	}
	return document, nil
}

func definitionFiles(kind Kind) ([]string, error) {
	groups, err := definitions.ReadDir(".")
	if err != nil {
		return nil, err
	}
	found := []string{}
	for _, group := range groups {
		file := path.Join(group.Name(), kind.Version, kind.DefinitionName()+".yaml")
		if _, err := definitions.Open(file); err == nil {
			found = append(found, file)
		}
	}
	return found, nil
}
