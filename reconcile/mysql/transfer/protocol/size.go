package protocol

import (
	"math"
	"strconv"
	"strings"
)

// Size formats a number of bytes for users, as Kubernetes writes quantities: 980, 1.2Gi, 180Mi.
func Size(bytes int64) string {
	const kibi = 1024
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	value, unit := float64(bytes), 0
	for math.Round(value*10)/10 >= kibi && unit < len(units)-1 {
		value /= kibi
		unit++
	}
	digits := 1
	if unit == 0 || value >= 100 { // 180Mi is precise enough
		digits = 0
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', digits, 64), ".0") + units[unit]
}
