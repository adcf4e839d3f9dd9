package report

import "fmt"

// tile is one number in large.
type tile struct{ Name, Value, Text string }

// tiles are the numbers that a person looks for first.
func tiles(p *Page, t *timeline) []tile {
	rows := tile{"Rows", count(p.Rows), "of the input"}
	if p.Total > 0 {
		rows.Text = fmt.Sprintf("of %s (%s)", count(p.Total), share(p.Rows, p.Total))
	}
	out := []tile{rows,
		{"Errors", count(p.Errors), share(p.Errors, p.Rows) + " of the rows"},
		{"Tokens of replies", count(p.CompletionTokens), "in " + plural(p.Replies, "reply", "replies")},
		{"Tokens of prompts", count(p.PromptTokens), "in rows with a reply"},
	}
	if t == nil {
		return out
	}
	speed := tile{"Tokens/s", number(1000 * float64(t.sum.Tokens) / float64(t.length)), "while running"}
	took := tile{"Running time", duration(t.length), "in " + plural(int64(len(t.parts)), "stretch", "stretches")}
	out = append(out, speed, took)
	if guessed, kept := t.kept(); guessed > 0 {
		out = append(out, tile{"Drafting gain", "× " + digits(gain(float64(t.sum.Tokens), float64(kept))), "tokens per forward of a lane"})
	}
	if t.sum.RSS > 0 {
		out = append(out, tile{"Peak memory", memory(float64(t.sum.RSS)), "resident"})
	}
	return out
}
