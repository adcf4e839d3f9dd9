package cpu

import (
	"unsafe"

	"tfbatch/internal/backend"
)

// KV is a pool of pages. A page holds, for every layer and KV head, K as [Dim][PageKeys],
// so that a vector holds a d of 16 keys, and then V as [PageKeys][width], so that it holds
// 16 d of a key; width is Dim rounded up to a multiple of 16.
type KV struct {
	dev    *Device
	shape  backend.KVShape
	width  int
	size   int // bytes of a value
	head   int // values of K and V of one head
	region region
}

// NewKV implements [backend.Device].
func (d *Device) NewKV(s backend.KVShape) (backend.KV, error) {
	if _, err := product("kv", s.Layers, s.Pages, s.Heads, s.Dim, backend.PageKeys); err != nil {
		return nil, err
	}
	kv := &KV{dev: d, shape: s, width: ceilDiv(s.Dim, lanes) * lanes, size: 2}
	if s.F32 {
		kv.size = 4
	}
	kv.head = backend.PageKeys * (s.Dim + kv.width)
	bytes, err := product("kv", s.Layers, s.Pages, s.Heads, kv.head, kv.size)
	if err != nil {
		return nil, err
	}
	kv.region, err = d.reserve("kv", bytes)
	return kv, err
}

// Shape implements [backend.KV].
func (kv *KV) Shape() backend.KVShape { return kv.shape }

// Bytes implements [backend.KV].
func (kv *KV) Bytes() int64 { return int64(len(kv.region.bytes)) }

// at is K and V of one head of a page.
func (kv *KV) at(page, layer, head int) (k, v unsafe.Pointer) {
	from := ((page*kv.shape.Layers+layer)*kv.shape.Heads + head) * kv.head * kv.size
	k = unsafe.Pointer(&kv.region.bytes[from])
	return k, unsafe.Add(k, backend.PageKeys*kv.shape.Dim*kv.size)
}

// store puts k and v of one position into a head of a page.
func (kv *KV) store(page, layer, head, slot int, key, value []float32) {
	kp, vp := kv.at(page, layer, head)
	if kv.shape.F32 {
		ks := unsafe.Slice((*float32)(kp), backend.PageKeys*len(key))
		for d, x := range key {
			ks[d*backend.PageKeys+slot] = x
		}
		copy(unsafe.Slice((*float32)(vp), backend.PageKeys*kv.width)[slot*kv.width:], value)
		return
	}
	ks := unsafe.Slice((*uint16)(kp), backend.PageKeys*len(key))
	for d, x := range key {
		ks[d*backend.PageKeys+slot] = backend.RoundBF16(x)
	}
	vs := unsafe.Slice((*uint16)(vp), backend.PageKeys*kv.width)[slot*kv.width:]
	for d, x := range value {
		vs[d] = backend.RoundBF16(x)
	}
}

// kv checks that v is ours and has the layer.
func (p *Pass) kv(v backend.KV, layer int) *KV {
	own, ok := v.(*KV)
	if !ok || own == nil || own.dev != p.dev {
		p.fail("kv is not a pool of this device")
		return &KV{}
	}
	if layer < 0 || layer >= own.shape.Layers {
		p.fail("layer %d of %d", layer, own.shape.Layers)
	}
	return own
}
