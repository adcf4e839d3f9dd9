package kernels

// Ring is one layer of convolution state, [lane][position mod Len][channel].
type Ring struct {
	State         Span
	Len, Channels int
}

// At is the inputs of one position of a lane.
func (r Ring) At(lane, pos int) Span {
	size := 4 * int64(r.Channels)
	return Span{r.State.Mem, r.State.Off + (int64(lane)*int64(r.Len)+int64(pos%r.Len))*size, size}
}

// ShortConv convolves rows rows of bcx [rows, 3·Channels] with w [Channels, taps] and then
// stores their inputs in the ring. bias may be empty.
func ShortConv(dst, bcx, w, bias Span, ring Ring, lane, pos Span, rows, taps int) [2]Launch {
	n := rows * ring.Channels
	return [2]Launch{
		launchShortconv(&kShortconv, flat(n), bcx, w, bias, ring.State, lane, pos, dst, shortconvArgs{
			N: uint32(n), Channels: uint32(ring.Channels), Taps: uint32(taps), Ring: uint32(ring.Len), HasBias: flag(bias.Mem != nil),
		}),
		launchRemember(&kRemember, flat(n), bcx, lane, pos, ring.State, rememberArgs{
			N: uint32(n), Rows: uint32(rows), Channels: uint32(ring.Channels), Ring: uint32(ring.Len),
		}),
	}
}
