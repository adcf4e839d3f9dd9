package nn

import (
	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// ends are the two ends of a decoder: the embedding below, the final norm and the head above.
type ends struct {
	embed, untied backend.Weight // [Vocab, Hidden]; untied is nil when the embedding is the head
	norm          backend.Buffer // [1, Hidden]
}

func (e *ends) plan(p *model.Planner, c *Config, norm string) {
	p.Weight(&e.embed, c.Hidden, model.Part{Tensor: "model.embed_tokens.weight", Rows: c.Vocab})
	p.Vector(&e.norm, model.Part{Tensor: norm, Rows: c.Hidden})
	if c.Tied {
		p.Ignore(model.HeadTensor) // a copy of the embedding that some exporters write
	} else {
		p.Weight(&e.untied, c.Hidden, model.Part{Tensor: model.HeadTensor, Rows: c.Vocab})
	}
}

func (e *ends) head() backend.Weight {
	if e.untied != nil {
		return e.untied
	}
	return e.embed
}
