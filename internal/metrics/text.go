package metrics

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// ContentType is the type of what [WriteText] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Kind is a kind of family, as Prometheus calls it.
type Kind string

// The kinds of families.
const (
	Counter Kind = "counter" // its name ends in _total
	Gauge   Kind = "gauge"
)

// Family is one metric: its values differ by their labels. Name and the labels' names are ours, help and the labels'
// values may be any text.
type Family struct {
	Name   string
	Kind   Kind
	Help   string
	Values []Value
}

// Value is one number of a family.
type Value struct {
	Labels []Label
	Value  float64
}

// Label is a name and its text.
type Label struct{ Name, Text string }

// WriteText writes families in the text format of Prometheus, without those that have no value.
func WriteText(w io.Writer, families []Family) error {
	out := bufio.NewWriter(w) // keeps the first error until Flush
	for i := range families {
		if f := &families[i]; len(f.Values) > 0 {
			f.write(out)
		}
	}
	return out.Flush()
}

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func (f *Family) write(out *bufio.Writer) {
	out.WriteString("# HELP " + f.Name + " " + escapeHelp.Replace(valid(f.Help)) + "\n# TYPE " + f.Name + " " + string(f.Kind) + "\n")
	for _, v := range f.Values {
		out.WriteString(f.Name)
		for i, l := range v.Labels {
			open := ","
			if i == 0 {
				open = "{"
			}
			out.WriteString(open + l.Name + `="` + escapeLabel.Replace(valid(l.Text)) + `"`)
		}
		if len(v.Labels) > 0 {
			out.WriteByte('}')
		}
		out.WriteString(" " + strconv.FormatFloat(v.Value, 'g', -1, 64) + "\n")
	}
}

func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
