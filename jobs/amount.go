package jobs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Amount is a count (of bytes or rows) or a share of the whole: Percent is used unless it is 0.
type Amount struct {
	Count   int64
	Percent float64
}

// Of is the amount where whole is everything.
func (a Amount) Of(whole int64) int64 {
	if a.Percent != 0 {
		return int64(a.Percent / 100 * float64(whole))
	}
	return a.Count
}

// String is the form that a job file has: "70%" or "1048576".
func (a Amount) String() string {
	if a.Percent != 0 {
		return strconv.FormatFloat(a.Percent, 'g', -1, 64) + "%"
	}
	return strconv.FormatInt(a.Count, 10)
}

// MarshalText writes String.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// units of sizes, longer names first so that a suffix is found whole.
var units = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// parseSize reads "16MiB", "2 GB" or "1024".
func parseSize(text string) (int64, error) {
	digits, scale := text, int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			digits, scale = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/scale {
		return 0, fmt.Errorf("%q is no size such as 512MiB, 16GB or 1048576", text)
	}
	return n * scale, nil
}

// parsePercent reads "70%" or "0.5%".
func parsePercent(text string) (float64, error) {
	digits, ok := strings.CutSuffix(text, "%")
	p, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(p >= 0 && p <= 100) {
		return 0, fmt.Errorf("%q is no share from 0%% to 100%%", text)
	}
	return p, nil
}
