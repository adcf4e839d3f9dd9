package tokenizer

import "strings"

// Bytes is the text that id adds to a reply, which need not be whole characters. It is empty for a special token, for
// an id that is not used, and where tokens are joined with spaces, so that no text is a token's own.
func (t *Tokenizer) Bytes(id int32) string {
	if !t.known(id) || t.tokens[id].special {
		return ""
	}
	text := t.tokens[id].text
	for _, build := range t.decoders {
		switch d := build().(type) {
		case rewrite:
			text = d.do(text)
		case *unmarked:
			text = strings.ReplaceAll(text, d.mark, " ")
		case *spelled:
			if bytes, ok := unspell(text); ok {
				text = bytes
			}
		case *hexBytes:
			if b, ok := hexByte(text); ok {
				text = string([]byte{b})
			}
		case *spaces:
			return ""
		}
	}
	return text
}
