package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestEachMutantIsOneChange: the texts of the table follow the code.
func TestEachMutantIsOneChange(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, one := range mutants() {
		source, err := os.ReadFile(filepath.Join("..", "..", one.path()))
		if err != nil {
			t.Fatal(err)
		}
		if broken, err := one.apply(string(source)); err != nil || broken == string(source) {
			t.Errorf("mutant %q changes nothing, or not one place: %v", one.name, err)
		}
		if names[one.name] {
			t.Errorf("two mutants have the name %q", one.name)
		}
		names[one.name] = true
	}
}
