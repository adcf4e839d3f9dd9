package engine

import "testing"

func TestTwoLargest(t *testing.T) {
	for _, c := range []struct {
		logits []float32
		want   float32
	}{
		{[]float32{1, 4}, 3}, {[]float32{4, 1}, 3}, {[]float32{4, 1, 2}, 2}, {[]float32{0, 1, 9, 7, 9}, 0}, {[]float32{-3, -9, -1}, 2},
	} {
		if got := twoLargest(c.logits); got != c.want {
			t.Errorf("%v: got %v, want %v", c.logits, got, c.want)
		}
	}
}
