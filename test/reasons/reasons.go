// Package reasons reads the reasons of conditions and events from the code, so that tests can compare them with the documents.
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

// Constants returns the string constants of a package whose names begin with the prefix, by name. Test files are left out.
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

// Uses counts how often a name occurs in a package's files. Test files are left out.
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

// Section returns the text of a document below a heading, up to the next heading of the same rank.
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

// CheckDocumented fails the test for each word that a document does not mark as code: users see these words in a status or an event, and
// must find them there.
func CheckDocumented(t *testing.T, document string, words map[string]string) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if len(words) == 0 {
		t.Fatal("there are no words to search for")
	}
	marked := Marked(string(text))
	for name, word := range words {
		if !slices.Contains(marked, word) {
			t.Errorf("%s does not explain %s (%s)", document, word, name)
		}
	}
}

// Marked returns the words of a text that are marked as code and written like reasons.
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
