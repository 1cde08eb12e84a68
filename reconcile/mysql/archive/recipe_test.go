package archive

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

// The commands in docs/backup-format.md restore a backup without any program of this repository.
func TestRecipeOfTheDocs(t *testing.T) {
	t.Parallel()
	if testing.Short() || withRace {
		t.Skip("needs age and zstd, which make test-unit installs, and runs without the race detector")
	}
	need := exec.CommandContext(t.Context(), "../../../hack/need", "age=age", "zstd=zstd", "tar=tar")
	if output, err := need.CombinedOutput(); err != nil {
		t.Fatalf("install the programs of the recipe: %v\n%s", err, output)
	}
	document, err := os.ReadFile("../../../docs/backup-format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(document), "```sh\n")
	script, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("the document has no recipe")
	}
	recipe := filepath.Join(t.TempDir(), "restore.sh")
	if err := os.WriteFile(recipe, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	identity := newIdentity(t)
	key := filepath.Join(t.TempDir(), "key.txt")
	if err := os.WriteFile(key, []byte(identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, recipients := range map[string][]age.Recipient{"plain": nil, "encrypted": {identity.Recipient()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			followRecipe(t, recipe, key, recipients)
		})
	}
}

func followRecipe(t *testing.T, recipe, key string, recipients []age.Recipient) {
	t.Helper()
	dir := t.TempDir()
	writer, err := Begin(t.Context(), volumeAt(t, dir), WriteOptions{Identity: owner("nightly"), PartSize: 1 << 20, Recipients: recipients})
	if err != nil {
		t.Fatal(err)
	}
	expected := tree{}
	if err := copyOf(both{writer, expected}, seeded(3), 8<<20); err != nil {
		t.Fatal(err)
	}
	randomCalls(t, both{expected, writer}, seeded(4), expected)
	if _, _, err := writer.Finish(t.Context(), manifestOf()); err != nil {
		t.Fatal(err)
	}
	backup, target := nightlyIn(dir), filepath.Join(t.TempDir(), "data")
	if output, err := exec.CommandContext(t.Context(), "sh", recipe, backup, target, key).CombinedOutput(); err != nil {
		t.Fatalf("restore: %v\n%s", err, output)
	}
	found := tree{}
	for path, content := range contents(t, target) {
		if !strings.HasPrefix(path, "/#clone/") {
			found[strings.TrimPrefix(path, "/")] = []byte(content)
		}
	}
	if difference := found.differs(expected); difference != "" {
		t.Error(difference)
	}
	// The recipe fails if one bit of a part, or of the manifest, is changed.
	for _, file := range []string{"manifest.json", filepath.Base(filesOf(t, backup)[1])} {
		restore := remembered(t, filepath.Join(backup, file))
		flip(t, filepath.Join(backup, file), seeded(9))
		if err := exec.CommandContext(t.Context(), "sh", recipe, backup, target+"-"+file, key).Run(); err == nil {
			t.Errorf("it restores a corrupt backup: %s", file)
		}
		restore()
	}
}
