package kernels

// Embed sets dst[i] = table[ids[i]] for n ids of 32 bits.
func Embed(dst Span, table Weight, ids Span, n int) Launch {
	k, err := kernelsFor(table.Format)
	if err != nil {
		panic("kernels: embed: " + err.Error()) // Layout.Check refused it
	}
	return launchEmbed(&kEmbed, flat(n*table.Cols), table.Codes, table.Scales, ids, dst, embedArgs{
		N: uint32(n * table.Cols), Cols: uint32(table.Cols), Units: uint32(table.units()), Runs: uint32(table.runs()),
		Format: k.code, Scales: scaleKind(table.ScaleKind),
	})
}
