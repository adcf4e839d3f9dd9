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

// writeWeights lets the loader push one matrix at a time into the writer, which asks for them in the same order.
func (p *Plan) writeWeights(ctx context.Context, to string, progress func(n int64)) error {
	g, ctx := errgroup.WithContext(ctx)
	w := &weights{ctx: ctx, formats: make(map[string]quant.Format), sent: make(chan []part), written: make(chan struct{})}
	var parts []loader.Tensor
	for _, t := range p.Tensors {
		w.formats[t.Name] = t.Format
		parts = append(parts, t.parts()...)
	}
	g.Go(func() error {
		_, err := loader.Load(ctx, p.source, loader.Steps[[]part]{
			Want: func(loader.Tensor) bool { return true }, Encode: w.encode, Upload: w.send, Progress: progress,
		})
		return err
	})
	g.Go(func() error { return loader.Create(to, parts, shardBytes, w.fill) })
	return g.Wait()
}

// part is the bytes of one of the tensors that a tensor becomes, in pieces.
type part [][]byte

// weights are on their way from the loader to the writer. What is sent are all parts of one tensor.
type weights struct {
	ctx     context.Context // of this transfer alone
	formats map[string]quant.Format
	sent    chan []part
	written chan struct{} // the bytes of what was sent are free again
	left    []part        // parts that the writer has and has not written
}

func (w *weights) encode(t loader.Tensor, data []byte) ([]part, error) {
	format := w.formats[t.Name]
	if format.Kind != quant.Affine {
		return []part{{data}}, nil
	}
	last := len(t.Shape) - 1
	m := quant.Matrix{Rows: 1, Cols: t.Shape[last], Format: quant.Format{Kind: kinds[t.DType]}, Data: data}
	for _, d := range t.Shape[:last] {
		m.Rows *= d
	}
	return encodeRows(m, format)
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

// send waits until the writer has written all parts, whose bytes may be the loader's.
func (w *weights) send(_ loader.Tensor, parts []part) error {
	select {
	case w.sent <- parts:
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	select {
	case <-w.written:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

// fill writes the next part of the tensor at hand, or the first one of the next.
func (w *weights) fill(_ loader.Tensor, to io.Writer) error {
	if len(w.left) == 0 {
		select {
		case w.left = <-w.sent:
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
	for _, piece := range w.left[0] {
		if _, err := to.Write(piece); err != nil {
			return err
		}
	}
	if w.left = w.left[1:]; len(w.left) > 0 {
		return nil
	}
	select {
	case w.written <- struct{}{}:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
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
