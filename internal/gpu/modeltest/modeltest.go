// Package modeltest holds a GPU device to the CPU's replies on a whole model: the one that
// tfbatch brings along, with its drafter.
package modeltest

import (
	"fmt"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
	"tfbatch/internal/selftest"
)

// Size is how much to ask for: a GPU made of a CPU is slow.
type Size struct {
	selftest.Questions
	Lanes []int
}

// Run compares replies on dev, plain and drafted, greedy and sampled, with those of the CPU
// device on one lane.
func Run(t *testing.T, dev backend.Device, size Size) {
	ref, err := cpu.Open(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ref.Close()
	want := replies(t, load(t, ref), "plain", 1, size.Questions)
	m := load(t, dev)
	for _, drafts := range selftest.Drafts {
		for _, lanes := range size.Lanes {
			t.Run(fmt.Sprintf("%s/%d lanes", drafts, lanes), func(t *testing.T) {
				if err := selftest.SameReplies(replies(t, m, drafts, lanes, size.Questions), want); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func load(t *testing.T, dev backend.Device) *selftest.Model {
	t.Helper()
	m, err := selftest.Load(t.Context(), dev)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func replies(t *testing.T, m *selftest.Model, drafts string, lanes int, q selftest.Questions) [][]int32 {
	t.Helper()
	ids, err := m.Replies(t.Context(), drafts, lanes, q)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
