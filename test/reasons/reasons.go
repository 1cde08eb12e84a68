// Package reasons reads the words for what is wrong out of the code, so that tests can hold the documents against them.
package reasons

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Constants are the text constants of a package's files whose names begin so, by name. Those of tests are none.
func Constants(t *testing.T, folder, prefix string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range files(t, folder) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
				return true
			}
			if value, ok := spec.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING {
				found[spec.Names[0].Name], _ = strconv.Unquote(value.Value)
			}
			return true
		})
	}
	return found
}

// Uses counts how often a name occurs in a package's own files.
func Uses(t *testing.T, folder, name string) int {
	t.Helper()
	word := regexp.MustCompile(`\b` + name + `\b`)
	count := 0
	for _, file := range files(t, folder) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		count += len(word.FindAllIndex(text, -1))
	}
	return count
}

// Section is what stands in a document below a heading, up to the next one of its rank.
func Section(t *testing.T, document, heading string) string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", document, heading)
	}
	rank, _, _ := strings.Cut(heading, " ")
	section, _, _ = strings.Cut(section, "\n"+rank+" ")
	return section
}

// Documented tells which words a document does not mark as code: what people meet in a status or an event, they are to find there.
func Documented(t *testing.T, document string, words map[string]string) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if len(words) == 0 {
		t.Fatal("there are no words to look for")
	}
	marked := Marked(string(text))
	for name, word := range words {
		if !slices.Contains(marked, word) {
			t.Errorf("%s does not say what %s (%s) means", document, word, name)
		}
	}
}

// Marked are the words of a text that are marked as code and written as reasons are.
func Marked(text string) []string {
	found := regexp.MustCompile("`([A-Z][A-Za-z]+)`").FindAllStringSubmatch(text, -1)
	words := make([]string, 0, len(found))
	for _, word := range found {
		words = append(words, word[1])
	}
	return words
}

func files(t *testing.T, folder string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for _, file := range all {
		if !strings.HasSuffix(file, "_test.go") {
			own = append(own, file)
		}
	}
	return own
}
