package nn

// RopeTable is the rotary table of positions 0 ≤ p < positions for heads of dim elements: for each
// position dim/2 cosines, then dim/2 sines, of the angles p·theta^(-2i/dim). [positions, dim]
// It is computed in float64 and rounded once; theta is 1 or more.
func RopeTable(positions, dim int, theta float64) []float32 {
	half := dim / 2
	frequency := make([]float64, half)
	for i := range frequency {
		frequency[i] = exp(float64(ln(theta) * (-2 * float64(i) / float64(dim))))
	}
	table := make([]float32, positions*dim)
	for p := range positions {
		row := table[p*dim:][:dim]
		for i, f := range frequency {
			sin, cos := sincos(float64(float64(p) * f))
			row[i], row[half+i] = float32(cos), float32(sin)
		}
	}
	return table
}
