package nn

import (
	"math"

	"tfbatch/internal/model"
)

// RopeTable is the rotary table of positions 0 ≤ p < positions for heads of dim elements: for each
// position dim/2 cosines, then dim/2 sines, of p times each of the rope's angles. [positions, dim]
// It is computed in float64 and rounded once; the base is 1 or more.
func RopeTable(positions, dim int, rope model.Rope) []float32 {
	half := dim / 2
	angle := make([]float64, half)
	for i := range angle {
		angle[i] = stretched(exp(float64(ln(rope.Theta)*(-2*float64(i)/float64(dim)))), rope)
	}
	table := make([]float32, positions*dim)
	for p := range positions {
		row := table[p*dim:][:dim]
		for i, a := range angle {
			sin, cos := sincos(float64(float64(p) * a))
			row[i], row[half+i] = float32(cos), float32(sin)
		}
	}
	return table
}

// stretched is an angle per position as the rope has it. Llama 3 goes by how often an angle turned within the
// positions of its first training.
func stretched(angle float64, rope model.Rope) float64 {
	switch rope.Kind {
	case model.RopeLinear:
		return angle / rope.Factor
	case model.RopeLlama3:
		turns := float64(float64(rope.Original)*angle) / (2 * math.Pi)
		fast := min(max((turns-rope.Low)/(rope.High-rope.Low), 0), 1)
		return float64((1-fast)*angle)/rope.Factor + float64(fast*angle)
	}
	return angle
}
