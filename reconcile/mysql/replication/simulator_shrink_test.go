package replication

// mostAttempts limits how many shorter lives of a cluster are tried.
const mostAttempts = 1500

// shrink leaves out events of a life that has broken a promise, for as long as it breaks the same one, and returns the shortest life with
// the number of its events (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", without the parts that are kept).
func shrink(failed *world, born func() *world) (shortest *world, left int) {
	kept := make([]int, failed.counted)
	for i := range kept {
		kept[i] = i + 1
	}
	attempts := 0
	for size := len(kept) / 2; size > 0; size /= 2 {
		for from := 0; from < len(kept) && attempts < mostAttempts; attempts++ {
			rest := append(append([]int{}, kept[:from]...), kept[min(from+size, len(kept)):]...)
			if w := livesOnly(born(), rest); w.kind == failed.kind {
				failed, kept = w, rest
			} else {
				from += size
			}
		}
	}
	return failed, len(kept)
}

// livesOnly makes only these events happen.
func livesOnly(w *world, kept []int) *world {
	isKept := map[int]bool{}
	for _, event := range kept {
		isKept[event] = true
	}
	w.live(func(event int) bool { return !isKept[event] })
	return w
}
