// Package exactness holds the product's first promise by a test of the real model: the ids
// of a reply are the same whatever the lanes, the prefill chunk, the threads, the drafter, the order of
// the prompts and the instruction set. It has no code of its own. The hashes are golden, so
// that another machine, or another architecture under an emulator, is held to the same ones.
package exactness
