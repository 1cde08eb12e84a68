package replication

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The explorer tries all pairs of faults in a small cluster. Its parts take their steps in a fair order. The first fault hits a healthy
// cluster, and the second one comes before any of the steps that follow. So it is a search with two delays at most (Emmi, Qadeer and
// Rakamaric, "Delay-Bounded Scheduling").

//nolint:gochecknoglobals // a flag of the test binary
var explorePairs = flag.Int("explore-pairs", defaultPairs, "how many pairs of faults the explorer tries in a cluster of each kind; 0 tries all")

const (
	// exploredRounds is how many rounds the second fault has to come. Most takeovers need fewer.
	exploredRounds = 10
	// brokenRounds is for how many rounds both faults last.
	brokenRounds = 4
)

// explored are the kinds of clusters that the explorer tries.
type explored struct {
	replicas int
	policy   Durability
	seed     uint64
}

func (e explored) String() string {
	return fmt.Sprintf("%d members, continue: %t, seed %d", e.replicas, e.policy.Continue, e.seed)
}

func TestAPairOfFaultsBreaksNoPromise(t *testing.T) {
	t.Parallel()
	const most = 9 // copies to wait for: all that there are
	for _, cluster := range []explored{
		{5, Durability{Least: most}, 5}, {3, Durability{Least: most}, 1}, {3, Durability{Continue: true, Grace: 10 * time.Second}, 2}, {2, Durability{Least: most}, 3}, {2, Durability{Continue: true, Grace: 10 * time.Second}, 4},
	} {
		t.Run(cluster.String(), func(t *testing.T) {
			t.Parallel()
			cluster.explore(t)
		})
	}
}

// explore tries the pairs of the flag.
func (e explored) explore(t *testing.T) {
	t.Helper()
	steps := exploredRounds * len(e.healthy(t).steps())
	kinds := deviations(e.replicas)
	pairs, dice := len(kinds)*steps*len(kinds), rand.New(rand.NewPCG(e.seed, 0))
	for count := 0; count < cmp.Or(*explorePairs, pairs) && !t.Failed(); count++ {
		n := count
		if *explorePairs > 0 {
			n = dice.IntN(pairs)
		}
		first, at, second := n%len(kinds), n/len(kinds)%steps, n/len(kinds)/steps
		w := e.healthy(t)
		w.meets(kinds[first], kinds[second], at)
		if w.violation != "" {
			t.Errorf("pair %d of %d, %s at once and %s before step %d: %s\n%s", n, pairs, kinds[first].name, kinds[second].name, at, w.violation, w.history())
		}
	}
}

// healthy returns a cluster at full strength with some rows.
func (e explored) healthy(t *testing.T) *world {
	t.Helper()
	return e.among(t, e.replicas)
}

// among returns the same in a world that may have more members later.
func (e explored) among(t *testing.T, members int) *world {
	t.Helper()
	w := newWorld(e.seed)
	w.members = w.members[:members]
	w.replicas, w.isPair, w.policy, w.isolated.isLikely = e.replicas, false, e.policy, false
	w.prompt, w.patience, w.shortLease, w.longLease = 5, 3, 4, 8
	for n := range 300 {
		w.roll(n)
		w.write()
		w.round()
		if w.strong() {
			w.counted = n
			return w
		}
	}
	t.Fatalf("%s: the cluster is not at full strength, %s\n%s", e, w.weakness(), w.history())
	return nil
}

// meets lets a cluster meet two faults.
func (w *world) meets(first, second deviation, at int) {
	w.say("first: %s", first.name)
	first.happens(w)
	one := w.steps()
	for step := range at + brokenRounds*len(one) {
		if step == at {
			w.say("second: %s", second.name)
			second.happens(w)
		}
		w.counted++
		w.roll(w.counted)
		if step%len(one) == 0 {
			w.write()
		}
		one[step%len(one)]()
		w.check()
		if w.violation != "" {
			return
		}
	}
	w.settle()
}

// deviation is something that does not happen by itself.
type deviation struct {
	name    string
	happens func(w *world)
}

// deviations returns what may happen in a cluster of so many members.
func deviations(replicas int) []deviation {
	all := []deviation{
		{"the operator restarts", func(w *world) { w.operator, w.silences = pass{}, silences{} }},
		{"the operator restarts and sees an earlier record", func(w *world) { w.operator, w.silences = pass{stale: true}, silences{} }},
		{"much time passes", func(w *world) { w.pass(w.longLease + 2) }},
		{"binary logs are purged", (*world).purge},
	}
	for ordinal := range replicas {
		for _, one := range []struct {
			what string
			to   func(w *world, m *simulated)
		}{
			{"its mysqld is killed", func(_ *world, m *simulated) { m.crash() }},
			{"its mysqld ends and cannot start", func(_ *world, m *simulated) { m.isBroken = true; m.crash() }},
			{"its mysqld hangs", func(_ *world, m *simulated) { m.sql.hung = true }},
			{"its volume stands still", func(w *world, m *simulated) { w.fails(m, true) }},
			{"its volume is full", func(w *world, m *simulated) { w.fails(m, false) }},
			{"its agent is killed", func(_ *world, m *simulated) { m.killAgent() }},
			{"its Pod is replaced", (*world).replacePod},
			{"its Pod ends in order", (*world).endPod},
			{"its volume is lost", (*world).loseVolume},
			{"the network cuts it off from the others", func(_ *world, m *simulated) { m.cut = true }},
			{"the network cuts it off from the operator", func(_ *world, m *simulated) { m.deaf = true }},
			{"the network cuts it off from all", func(_ *world, m *simulated) { m.cut, m.deaf = true, true }},
			{"the network reaches it again", func(_ *world, m *simulated) { m.cut, m.deaf = false, false }},
			{"a user stops its applier", (*world).stopApplier},
			{"it gets what is late", func(w *world, _ *simulated) { w.arrive() }},
		} {
			all = append(all, deviation{fmt.Sprintf("db-%d: %s", ordinal, one.what), func(w *world) { one.to(w, w.members[ordinal]) }})
		}
	}
	return all
}
