// Package model is what the engine knows of a language model: its facts, the state it
// keeps for lanes, and one forward over flat rows. Families (model/lfm2, ...) implement
// it; package nn holds the layers they share; package families lists them.
package model

import "tfbatch/internal/backend"

// Info is what a checkpoint says of itself.
type Info struct {
	Arch    string // model_type of config.json
	Vocab   int    // rows of the head; ids are below it
	Hidden  int    // width of the residual stream
	Layers  int
	Context int     // positions the model was made for (max_position_embeddings)
	BOS     int32   // -1 when there is none
	EOS     []int32 // generation_config.json and config.json joined
}

// Shape is how much state a run needs.
type Shape struct {
	Lanes  int   // sequences alive at once
	Pages  int   // KV pages of backend.PageKeys positions, shared by the lanes
	Rows   int   // most rows in one forward
	Heads  int   // most rows of one forward whose logits are wanted
	Window int   // widest verify window, 1 or more: the next forward may place a lane up to Window-1 positions back
	Taps   []int // layers whose output a drafter watches, ascending; usually none
	KVF32  bool  // keep K and V as f32 (fma-v1+kv32)
}

// Batch is one forward: flat rows of any lanes, prefill chunks, decode rows and verify
// rows alike. Heads lists the rows whose logits are wanted, ascending.
type Batch struct {
	IDs   []int32
	Rows  backend.Rows
	Heads []int32
	Taps  bool // whether the layers of Shape.Taps are wanted, of all rows; without, they cost nothing
}

// Out is what a forward leaves on the device until the next one.
type Out struct {
	Logits backend.Buffer // [len(Heads), Vocab]; nil when Heads is empty
	Taps   backend.Buffer // [rows, Hidden·len(Taps)]; nil where none were wanted
}

// Model is a loaded checkpoint. The engine's goroutine is its only user.
type Model interface {
	Info() Info
	// Footprint is what NewState will take, in bytes, without allocating it.
	Footprint(Shape) int64
	NewState(Shape) (State, error)
}

// State is the memory of running lanes: KV pages, convolution rings, scratch. Cutting a lane
// back needs no call: the next batch simply places its rows at the earlier position.
type State interface {
	Forward(p backend.Pass, b *Batch) Out
}
