// Package prose checks the language of the documents, of comments, and of the texts in the code that users see.
package prose

import (
	"bufio"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is how many columns a comment or a line of prose has at most. Tables, code and links are not wrapped.
const widest = 140

// avoided returns words that readers stumble over, as regular expressions, and what to write instead.
func avoided() map[string]string {
	return map[string]string{
		`says whether`:               "reports whether",
		`anew`:                       "again",
		`for ever`:                   "indefinitely, without end",
		`(no|some)body( else)?('s)?`: "name the actor: a user, another client, no controller",
		`what becomes of`:            "say what happens to it",
		`go(es|ing)? on`:             "continue",
		`(is|are|has|have) to be`:    "must be",
		`mend(s|ed|ing)?`:            "fix",
		`looked after`:               "managed, reconciled",
	}
}

func TestPlainEnglish(t *testing.T) {
	t.Parallel()
	patterns := map[*regexp.Regexp]string{}
	for words, instead := range avoided() {
		patterns[regexp.MustCompile(`(?i)\b(`+words+`)\b`)] = instead
	}
	for _, file := range sources(t) {
		for _, text := range prose(t, file) {
			for pattern, instead := range patterns {
				if found := pattern.FindString(text.words); found != "" {
					t.Errorf("%s: %q: better: %s", text.place, found, instead)
				}
			}
			if columns := utf8.RuneCountInString(text.line); columns > widest {
				t.Errorf("%s: %d columns, more than %d: wrap it", text.place, columns, widest)
			}
		}
	}
}

// text is a piece of prose. line is the line that it is wrapped in; empty where that does not matter.
type text struct{ place, words, line string }

func prose(t *testing.T, file string) []text {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(file, ".md") {
		return markdown(file, string(content))
	}
	return program(file, content)
}

var inlineCode = regexp.MustCompile("`[^`]*`")

// markdown returns the lines of a document but those of code blocks. Code in a line does not count as words.
func markdown(file, content string) []text {
	var found []text
	var isCode bool
	lines := bufio.NewScanner(strings.NewReader(content))
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			isCode = !isCode
			continue
		}
		if isCode {
			continue
		}
		piece := text{place: fmt.Sprintf("%s:%d", file, number), words: inlineCode.ReplaceAllString(line, "")}
		if isTable := strings.HasPrefix(line, "|"); !isTable && !strings.Contains(line, "](") {
			piece.line = line
		}
		found = append(found, piece)
	}
	return found
}

// program returns the comments and the text literals of a Go file. Literals with a line break are templates, scripts and test data.
func program(file string, content []byte) []text {
	var found []text
	set := token.NewFileSet()
	var lexer scanner.Scanner
	lexer.Init(set.AddFile(file, set.Base(), len(content)), content, nil, scanner.ScanComments)
	for {
		at, kind, literal := lexer.Scan()
		switch {
		case kind == token.EOF:
			return found
		case kind == token.COMMENT && !strings.HasPrefix(literal, "//go:"):
			found = append(found, text{place: set.Position(at).String(), words: literal, line: literal})
		case kind == token.STRING && !strings.Contains(literal, "\n"):
			found = append(found, text{place: set.Position(at).String(), words: literal})
		}
	}
}

// sources are the files of the repository that people write prose in.
func sources(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		switch {
		case entry.IsDir() && (name == "testdata" || name == "prose" || strings.HasPrefix(name, ".") && len(name) > 2):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go"), strings.HasSuffix(name, ".md"):
			found = append(found, path)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("no files to read: %v", err)
	}
	return found
}
