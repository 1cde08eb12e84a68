// Package sample chooses the cases of exhaustive tests that run. SAMPLE_STRIDE is the stride of samples, 4 by default; 1 takes all cases,
// as make test-long does. SAMPLE_SEED determines the cases of a sample. hack/run-tests derives it from the commit; without it, it is random
// in each run.
package sample

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Sample is every stride-th case of a test.
type Sample struct{ stride, first int }

// New returns the sample of a test, and logs how to repeat it. As many successive seeds as the stride take all cases.
func New(t *testing.T) Sample {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("SAMPLE_SEED"), 10, 31)
	if err != nil {
		seed = uint64(rand.Uint32() >> 1)
	}
	t.Logf("to repeat this sample: SAMPLE_STRIDE=%d SAMPLE_SEED=%d", stride(), seed)
	return Sample{stride(), int(seed) % stride()}
}

// Takes reports whether the case with this number runs.
func (s Sample) Takes(number int) bool { return number%s.stride == s.first }

// Count returns how many of a number of like repetitions a run makes: all with a stride of 1, and at least one.
func Count(repetitions int) int { return max(1, repetitions/stride()) }

// Rotate skips a test unless the sample takes its number. Each run takes some of the tests that are numbered from 0.
func Rotate(t *testing.T, number int) {
	t.Helper()
	if !New(t).Takes(number % stride()) {
		t.Skip("runs in another sample")
	}
}

func stride() int {
	stride, err := strconv.Atoi(os.Getenv("SAMPLE_STRIDE"))
	if err != nil || stride < 1 {
		return 4
	}
	return stride
}
