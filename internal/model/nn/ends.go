package nn

import (
	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// Ends are the two ends of a network: the embedding below, the final norm and the head above.
type Ends struct {
	embed, untied backend.Weight // [Vocab, Hidden]; untied is nil when the embedding is the head
	norm          backend.Buffer
}

// PlanEnds plans the embedding, the final norm under the given name, and the head of an untied model.
func PlanEnds(p *model.Planner, c *Config, norm string) *Ends {
	e := &Ends{}
	p.Weight(&e.embed, c.Hidden, model.Part{Tensor: "model.embed_tokens.weight", Rows: c.Vocab})
	p.Vector(&e.norm, model.Part{Tensor: norm, Rows: c.Hidden})
	if c.Tied {
		p.Ignore(model.HeadTensor) // a copy of the embedding that some exporters write
	} else {
		p.Weight(&e.untied, c.Hidden, model.Part{Tensor: model.HeadTensor, Rows: c.Vocab})
	}
	return e
}

// Embed starts the residual stream with the embeddings of the batch's ids. [rows, Hidden]
func (f *Forward) Embed(e *Ends) backend.Buffer {
	f.pass.Embed(f.h, e.embed, f.batch.IDs)
	return f.h
}

// Head norms the rows of h whose logits are wanted and multiplies them by the head. It ends the forward.
func (f *Forward) Head(h backend.Buffer, e *Ends) model.Out {
	if len(f.batch.Heads) > 0 {
		f.pass.Gather(f.headX, h, f.batch.Heads)                         // [heads, Hidden]
		f.pass.RMSNorm(f.headX, f.headX, e.norm, f.state.net.config.Eps) // [heads, Hidden]
		f.pass.MatMul(f.logits, f.headX, e.head())                       // [heads, Vocab]
	}
	return model.Out{Logits: f.logits, Taps: f.taps}
}

func (e *Ends) head() backend.Weight {
	if e.untied != nil {
		return e.untied
	}
	return e.embed
}
