package tokenizer

// frame is what the post-processor puts around one text.
type frame struct{ before, after []int32 }

// maxFrame is the most ids around a text; known files have one or two.
const maxFrame = 64

const processors = "Sequence, TemplateProcessing, ByteLevel"

// readFrame reads the post-processor. ByteLevel as one moves offsets only, which nobody here has.
func (t *Tokenizer) readFrame(p part, depth int) (frame, error) {
	if p.null() {
		return frame{}, nil
	}
	kind, err := p.kind()
	if err != nil {
		return frame{}, err
	}
	switch kind {
	case "ByteLevel":
		_, err := p.object("type", "add_prefix_space", "trim_offsets", "use_regex")
		return frame{}, err
	case "TemplateProcessing":
		return t.readTemplate(p)
	case "Sequence":
		frames, err := readSequence(p, "processors", nil, depth, func(p part, list []frame, depth int) ([]frame, error) {
			f, err := t.readFrame(p, depth)
			if len(f.before)+len(f.after) > 0 {
				list = append(list, f)
			}
			return list, err
		})
		if len(frames) > 1 {
			return frame{}, p.errorf("more than one TemplateProcessing is not supported")
		}
		if err != nil || len(frames) == 0 {
			return frame{}, err
		}
		return frames[0], nil
	}
	return frame{}, p.unsupported(kind, processors)
}

// readTemplate reads the template for one text; the one for pairs is not used.
func (t *Tokenizer) readTemplate(p part) (f frame, err error) {
	o, err := p.object("type", "single", "pair", "special_tokens")
	if err != nil {
		return f, err
	}
	var specials map[string]struct {
		IDs []int64 `json:"ids"`
	}
	if err := o.get("special_tokens").into(&specials); err != nil {
		return f, err
	}
	pieces, err := o.get("single").list()
	if err != nil {
		return f, err
	}
	seen := false // the text's own place
	for _, p := range pieces {
		id, text, err := readPiece(p)
		if err != nil {
			return f, err
		}
		if text {
			if seen || id != "A" {
				return f, p.errorf("sequence %q: only one A is supported", id)
			}
			seen = true
			continue
		}
		special, ok := specials[id]
		if !ok {
			return f, p.errorf("%q is not among special_tokens", id)
		}
		for _, id := range special.IDs {
			if id < 0 || id >= maxTokens || len(f.before)+len(f.after) == maxFrame {
				return f, p.errorf("id %d is not in the vocabulary, or more than %d ids", id, maxFrame)
			}
			if seen {
				f.after = append(f.after, int32(id))
			} else {
				f.before = append(f.before, int32(id))
			}
		}
	}
	if !seen {
		return f, o.get("single").errorf("the text itself has no place")
	}
	return f, nil
}

// readPiece reads {"SpecialToken": {"id": ...}} or {"Sequence": {"id": "A"}}.
func readPiece(p part) (id string, text bool, err error) {
	o, err := p.object("SpecialToken", "Sequence")
	if err != nil {
		return "", false, err
	}
	text = !o.get("Sequence").null()
	key := "SpecialToken"
	if text {
		key = "Sequence"
	}
	piece, err := o.get(key).object("id", "type_id")
	if err != nil {
		return "", false, err
	}
	id, err = piece.text("id")
	return id, text, err
}
