package modeltest

import (
	"flag"
	"testing"
)

func TestReleasesHaveTheirSizes(t *testing.T) {
	for name, c := range map[string]struct {
		spec       Spec
		tensors    int
		parameters int64
	}{
		"LFM2-350M": {LFM2of350M(), 148, 354_483_968},
		"LFM2-1.2B": {LFM2of1200M(), 148, 1_170_340_608},
	} {
		var parameters int64
		tensors := c.spec.Tensors()
		for _, tensor := range tensors {
			parameters += elements(tensor)
		}
		if len(tensors) != c.tensors || parameters != c.parameters {
			t.Errorf("%s: %d tensors, %d parameters, want %d, %d", name, len(tensors), parameters, c.tensors, c.parameters)
		}
	}
}

var made = flag.String("made", "", "directory for a checkpoint of random weights in the shape of LFM2-1.2B")

func TestMadeCheckpointIsWritten(t *testing.T) {
	if *made == "" {
		t.Skip("needs -made DIR")
	}
	if err := LFM2of1200M().Write(*made, 1); err != nil {
		t.Fatal(err)
	}
}
