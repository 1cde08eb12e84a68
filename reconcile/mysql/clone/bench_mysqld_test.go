package clone

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkCopy copies to a Sink that discards everything, over TLS on the loopback. It measures the protocol itself. Peak is the process's
// resident memory, including all of Go.
func BenchmarkCopy(b *testing.B) {
	donor := newServer(b)
	fill(b, donor, size(b))
	for b.Loop() {
		runtime.GC()
		result, err := Copy(b.Context(), donor.donor(), discard{}, Observer{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(result.Bytes)
	}
	b.ReportMetric(float64(peakResident(b)>>20), "MiB-peak")
}

func peakResident(b *testing.B) int64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "VmHWM:"); found {
			kibibytes, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return kibibytes << 10
		}
	}
	b.Fatal("no peak in /proc/self/status")
	return 0
}
