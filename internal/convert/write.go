package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"tfbatch/loader"
	"tfbatch/quant"
)

// shardBytes is the size of a file of weights, as mlx-lm has it.
const shardBytes = 5 << 30

// Write makes the folder to, which must be new or empty: the weights, the small files beside them, and at last
// config.json, without which nothing opens the folder. progress, if not nil, hears how many more bytes of the
// checkpoint were read.
func (p *Plan) Write(ctx context.Context, to string, progress func(n int64)) error {
	if err := makeEmpty(to); err != nil {
		return err
	}
	if err := p.writeWeights(ctx, to, progress); err != nil {
		return err
	}
	if err := p.copyFiles(to); err != nil {
		return err
	}
	config, err := p.newConfig()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, configName), config, 0o644)
}

func makeEmpty(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s %w", path, errNotEmpty)
	}
	return err
}

// writeWeights writes one tensor after the other, of which one matrix at a time is read.
func (p *Plan) writeWeights(ctx context.Context, to string, progress func(n int64)) error {
	w := &weights{ctx: ctx, source: p.source, progress: progress, left: p.Tensors, unread: p.source.Bytes()}
	var parts []loader.Tensor
	for _, t := range p.Tensors {
		parts = append(parts, t.parts()...)
	}
	if err := loader.Create(to, parts, shardBytes, w.fill); err != nil {
		return err
	}
	w.report(w.unread) // headers
	return nil
}

// part is the bytes of one of the tensors that a tensor becomes, in pieces.
type part [][]byte

// weights are on their way from the checkpoint to the writer.
type weights struct {
	ctx      context.Context // of this transfer alone
	source   *loader.Snapshot
	progress func(n int64)

	left   []Tensor // that the writer has not asked for
	parts  []part   // scales and biases of the one that it asked for last
	read   string   // the tensor in buf
	buf    []byte
	unread int64
}

// fill writes the next part: a tensor, or the scales or biases of the one before.
func (w *weights) fill(_ loader.Tensor, to io.Writer) error {
	if len(w.parts) == 0 {
		t := w.left[0]
		w.left = w.left[1:]
		return w.tensor(t, to)
	}
	next := w.parts[0]
	w.parts = w.parts[1:]
	return next.write(to)
}

func (p part) write(to io.Writer) error {
	for _, piece := range p {
		if _, err := to.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// tensor writes t, or its codes, and keeps what belongs to them.
func (w *weights) tensor(t Tensor, to io.Writer) error {
	coded := t.Format.Kind == quant.Affine
	var scales, biases part
	for _, s := range t.from {
		data, err := w.slab(s)
		if err != nil {
			return err
		}
		parts := []part{{data}}
		if coded {
			cols := t.Shape[len(t.Shape)-1]
			rows := int(s.size / t.DType.Size() / int64(cols))
			m := quant.Matrix{Rows: rows, Cols: cols, Format: quant.Format{Kind: kinds[t.DType]}, Data: data}
			if parts, err = encodeRows(m, t.Format); err != nil {
				return fmt.Errorf("tensor %q: %w", s.tensor.Name, err)
			}
			scales, biases = append(scales, parts[1]...), append(biases, parts[2]...)
		}
		if err := parts[0].write(to); err != nil {
			return err
		}
	}
	if coded {
		w.parts = []part{scales, biases}
	}
	return nil
}

// slab reads bytes of a tensor, or has them from the slab before.
func (w *weights) slab(s slab) (data []byte, err error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	if w.read != s.tensor.Name {
		w.read = ""
		if w.buf, err = w.source.ReadTensor(s.tensor.Name, w.buf); err != nil {
			return nil, err
		}
		w.read = s.tensor.Name
	}
	w.report(s.size)
	return w.buf[s.offset:][:s.size], nil
}

func (w *weights) report(n int64) {
	w.unread -= n
	if w.progress != nil {
		w.progress(n)
	}
}

// encodeRows encodes on all cores, some rows on each.
func encodeRows(m quant.Matrix, f quant.Format) ([]part, error) {
	workers := min(runtime.GOMAXPROCS(0), m.Rows)
	codes, scales, biases := make(part, workers), make(part, workers), make(part, workers)
	var g errgroup.Group
	for i := range workers {
		from, to := i*m.Rows/workers, (i+1)*m.Rows/workers
		g.Go(func() error {
			out, err := quant.Encode(m.Slice(from, to), f)
			if err != nil {
				return fmt.Errorf("from row %d on: %w", from, err)
			}
			codes[i], scales[i], biases[i] = out.Data, out.Scales, out.Biases
			return nil
		})
	}
	return []part{codes, scales, biases}, g.Wait()
}

// copied are the small files that belong to a model, as far as a checkpoint has them.
var copied = []string{
	"generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "chat_template.json",
	"special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "tokenizer.model", "LICENSE", "README.md",
}

// maxCopy is above the largest tokenizer known, of 33 MB.
const maxCopy = 128 << 20

func (p *Plan) copyFiles(to string) error {
	for _, name := range copied {
		data, err := p.source.ReadFile(name, maxCopy)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
