package vmgroup

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 63)
	names := []string{folderName("shop", "web"), folderName(long, long), folderName(long, long[:62]+"m"), folderName(long[:62], "n"+long)}
	if names[0] != "shop-web" || machineName(names[0], 12) != "shop-web-12" {
		t.Errorf("names %v", names)
	}
	for i, name := range names {
		if len(machineName(name, 999)) > maxName {
			t.Errorf("%s is too long", name)
		}
		for _, other := range names[:i] {
			if other == name {
				t.Errorf("two groups have the folder %s", name)
			}
		}
	}
	for name, want := range map[string]int{"shop-web-0": 0, "shop-web-12": 12, "shop-web-012": -1, "shop-web-": -1, "shop-web--1": -1, "shop-web-+1": -1, "shop-web-a-0": -1, "x": -1} {
		if got := numberOf("shop-web", name); got != want {
			t.Errorf("the number of %s is %d, want %d", name, got, want)
		}
	}
}
