package sizing

import (
	"fmt"
	"testing"
)

// TestPoolLeavesRoomForTheRest has the table of docs/sizing.md.
func TestPoolLeavesRoomForTheRest(t *testing.T) {
	t.Parallel()
	for memory, want := range map[int64]pool{
		256 * mib:  {32 * mib, 1, 32 * mib},
		512 * mib:  {128 * mib, 1, 32 * mib},
		768 * mib:  {288 * mib, 1, 32 * mib},
		gib:        {448 * mib, 1, 32 * mib},
		2200 * mib: {1152 * mib, 1, 128 * mib},
		4 * gib:    {2560 * mib, 1, 128 * mib},
		8 * gib:    {5376 * mib, 2, 128 * mib},
		16 * gib:   {11520 * mib, 5, 128 * mib},
		64 * gib:   {48128 * mib, 8, 128 * mib},
		512 * gib:  {392192 * mib, 8, 128 * mib},
	} {
		if got := poolOf(memory, nil); got != want {
			t.Errorf("%d MiB: %d MiB in %d instances of chunks of %d MiB, want %d MiB", memory/mib, got.size/mib, got.instances, got.chunk/mib, want.size/mib)
		}
	}
}

// TestPoolsOfInstancesAndChunksOfTheUsers: MySQL rounds a pool up to whole chunks in all instances, so our size is rounded down to the
// user's chunks.
func TestPoolsOfInstancesAndChunksOfTheUsers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		memory int64
		asked  Settings
		want   pool
	}{
		"eight instances, which chunks of 128 MiB would round up to 2 GiB": {2200 * mib, Settings{settingInstances: "8"}, pool{1216 * mib, 8, 2 * mib}},
		"eight instances of a small pool, of which MySQL makes one":        {gib, Settings{settingInstances: "8"}, pool{452 * mib, 8, 4 * mib}},
		"MySQL chooses the number of instances":                            {16 * gib, Settings{settingInstances: "0"}, pool{11520 * mib, 8, 16 * mib}},
		"more instances than MySQL makes":                                  {16 * gib, Settings{settingInstances: "99"}, pool{11520 * mib, 64, 2 * mib}},
		"large chunks":                                                     {4 * gib, Settings{settingChunk: "1G"}, pool{2 * gib, 1, gib}},
		"large chunks in several instances":                                {4 * gib, Settings{settingChunk: "512M", settingInstances: "2"}, pool{2 * gib, 2, 512 * mib}},
		"chunks larger than the pool, which MySQL makes smaller":           {8 * gib, Settings{settingChunk: "8G"}, pool{5602 * mib, 2, 8 * gib}},
		"chunks of an odd size":                                            {2200 * mib, Settings{settingChunk: "100M"}, pool{1200 * mib, 1, 100 * mib}},
		"rounding leaves one instance":                                     {2200 * mib, Settings{settingChunk: "100M", settingInstances: "10"}, pool{1000 * mib, 10, 100 * mib}},
		"the user's size":                                                  {4 * gib, Settings{settingPool: "1G"}, pool{gib, 1, 16 * mib}},
		"the user's size, in instances":                                    {4 * gib, Settings{settingPool: "2000M", settingInstances: "4"}, pool{2000 * mib, 4, 4 * mib}},
	} {
		got := poolOf(test.memory, test.asked)
		if got != test.want {
			t.Errorf("%s: %d MiB in %d instances of chunks of %d MiB", name, got.size/mib, got.instances, got.chunk/mib)
		}
	}
}

// TestMySQLLeavesOurPoolsAsTheyAre, with any other settings of the user.
func TestMySQLLeavesOurPoolsAsTheyAre(t *testing.T) {
	t.Parallel()
	for memory := int64(512 * mib); memory < 600*gib; memory += memory / 5 {
		for instances := range int64(mostInstances + 1) {
			for chunk := int64(mib); chunk < 300*gib; chunk += chunk/2 + 3*mib {
				asked := Settings{settingInstances: fmt.Sprint(instances), settingChunk: fmt.Sprint(chunk)}
				found := poolOf(memory, asked)
				if found.size > memory*3/4 || found.size < 32*mib || found.effectiveSize() != found.size {
					t.Fatalf("%d MiB, %v: %+v, of which MySQL makes %d MiB", memory/mib, asked, found, found.effectiveSize()/mib)
				}
			}
		}
	}
}

// TestWhatMySQLMakesOfAPool has what MySQL 9.7.4 did.
func TestWhatMySQLMakesOfAPool(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ size, instances, chunk, want int64 }{
		{1280, 8, 128, 2048},
		{1280, 1, 128, 1280},
		{1000, 8, 128, 1024}, // one instance
		{1025, 8, 128, 2048},
		{1500, 2, 1024, 1500}, // chunks of 750 MiB
		{1501, 2, 1024, 1502},
		{3, 1, 1, 5},
		{100, 1, 128, 100},
	} {
		if got := (pool{test.size * mib, test.instances, test.chunk * mib}).effectiveSize(); got != test.want*mib {
			t.Errorf("%+v: %d MiB", test, got/mib)
		}
	}
}
