package mysqlcluster

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// constants reads the text constants of a package's files whose names begin so, by name.
func constants(t *testing.T, folder, prefix string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range files {
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

// uses counts how often a name occurs in the package's own files.
func uses(t *testing.T, name string) int {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		count += len(regexp.MustCompile(`\b`+name+`\b`).FindAllIndex(text, -1))
	}
	return count
}

// Every reason that a cluster can give is explained to people, and nothing is explained that no cluster says.
func TestReasonsAreExplained(t *testing.T) {
	t.Parallel()
	own, decided := constants(t, ".", "reason"), constants(t, "../replication", "Reason")
	if len(own) < 20 || len(decided) < 5 {
		t.Fatalf("these are not all reasons: %v %v", own, decided)
	}
	for name, reason := range own {
		if uses(t, name) < 2 {
			t.Errorf("no cluster ever says %s", reason)
		}
	}
	reasons := slices.Concat(slices.Collect(maps.Values(own)), slices.Collect(maps.Values(decided)))
	// What Pods of restores say is said by the cluster as well; the steps are in one document only.
	restores := restoreReasons(t)
	explained := map[string][]string{"../../docs/troubleshooting.md": headings(t), "../../README.md": tabled(t)}
	for document, words := range explained {
		for _, reason := range reasons {
			if !slices.Contains(words, reason) {
				t.Errorf("%s does not explain %s", document, reason)
			}
		}
		for _, word := range words {
			if !slices.Contains(reasons, word) && !slices.Contains(restores, word) {
				t.Errorf("%s explains %s, which no cluster says", document, word)
			}
		}
	}
	for _, reason := range restores {
		if !slices.Contains(explained["../../docs/troubleshooting.md"], reason) {
			t.Errorf("docs/troubleshooting.md does not explain %s", reason)
		}
	}
}

// restoreReasons are those of reconcile/backup that this package speaks of.
func restoreReasons(t *testing.T) []string {
	t.Helper()
	var spoken []string
	for name, reason := range constants(t, "../backup", "Reason") {
		if uses(t, "backup."+name) > 0 && name != "ReasonCompleted" {
			spoken = append(spoken, reason)
		}
	}
	if len(spoken) < 15 {
		t.Fatalf("these are not all reasons: %v", spoken)
	}
	return spoken
}

// headings are the reasons that docs/troubleshooting.md has steps for.
func headings(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Reasons of Ready\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var words []string
	for _, heading := range regexp.MustCompile(`(?m)^### (.+)$`).FindAllStringSubmatch(section, -1) {
		words = append(words, strings.Split(heading[1], ", ")...)
	}
	return words
}

// tabled are the reasons in the README's tables.
func tabled(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Troubleshooting\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var words []string
	for _, cell := range regexp.MustCompile("(?m)^\\| (`[A-Z][^|]*) \\|").FindAllStringSubmatch(section, -1) {
		for _, word := range regexp.MustCompile("`([A-Z][A-Za-z]+)`").FindAllStringSubmatch(cell[1], -1) {
			if word[1] != "Ready" { // as in "`Paused` (`Ready` is Unknown)"
				words = append(words, word[1])
			}
		}
	}
	return words
}
