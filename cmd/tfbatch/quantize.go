package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tfbatch/internal/convert"
	"tfbatch/internal/families"
	"tfbatch/jobs"
	"tfbatch/quant"
)

func (a *app) quantizeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "quantize MODEL NEWFOLDER",
		Short: "make a smaller checkpoint of a model",
		Long: `quantize reads a dense checkpoint, one matrix at a time, and writes one whose matrices are
codes of a few bits with a scale and a bias for every group of inputs, as mlx-lm writes it:
experts, one by one or fused, become its stacks.
Norms, biases and convolutions stay as they are; matrices that choose experts keep 8 bits.
Memory does not grow with the model: two of its largest matrices, and their codes.`,
		Example: `  tfbatch quantize ./LFM2-1.2B ./LFM2-1.2B-4bit
  tfbatch quantize ./LFM2-24B-A2B ./LFM2-24B-A2B-6bit --bits 6 --group 64`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("quantize takes a model and a new folder; got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.quantize(c.Context(), args[0], args[1]) },
	}
	f := c.Flags()
	f.Int("bits", 4, "of a code: 2, 3, 4, 5, 6 or 8")
	f.Int("group", 64, "inputs that share a scale and a bias: 32, 64 or 128")
	f.String("progress", progressAuto, "auto (a bar on a terminal, else none) or none")
	return c
}

// quantizeReport is what quantize did.
type quantizeReport struct {
	Model  string `json:"model"`
	Folder string `json:"folder"`
	Format string `json:"format"`
	Coded  int    `json:"coded_tensors"`
	Kept   int    `json:"kept_tensors"`
	Before int64  `json:"bytes_before"`
	After  int64  `json:"bytes_after"`
}

func (a *app) quantize(ctx context.Context, from, to string) error {
	format := quant.Format{Kind: quant.Affine, Bits: a.set.bits, Group: a.set.group}
	if err := format.Check(); err != nil {
		return usage(err)
	}
	fsys, err := modelFiles(jobs.Path{Name: from, File: from})
	if err != nil {
		return refused(err)
	}
	p, err := convert.Open(fsys, format)
	if err != nil {
		return refused(fmt.Errorf("%s: %w", from, err))
	}
	if _, err := families.Open(p.Source()); err != nil { // better said now than of the result
		return refused(fmt.Errorf("%s: %w", from, err))
	}
	bar := a.newProgress("quantize")
	defer bar.close()
	if err := p.Write(ctx, to, bar.loading(p.Source().Bytes())); err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	bar.close()
	r := quantizeReport{Model: from, Folder: to, Format: format.String()}
	for _, t := range p.Tensors {
		if t.Format.Kind == quant.Affine {
			r.Coded++
		} else {
			r.Kept++
		}
	}
	r.Before, r.After = p.Bytes()
	if a.set.json {
		return writeJSON(a.stdout, r)
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %d matrices in %s, %d tensors as they were, %s of %s\n",
		to, r.Coded, r.Format, r.Kept, bytesText(r.After), bytesText(r.Before))
	return err
}
