package gate

import (
	"fmt"
	"html"
	"strings"
)

// Text is the summary as a table: a line per arm and cell, "below" where it was slower.
func (s *Summary) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-28s %-14s %10s %8s %16s %9s %10s\n", "cell", "arm", "tokens/s", "ratio", "spread", "accepted", "")
	for _, c := range s.Cells {
		for i, a := range c.Arms {
			name := ""
			if i == 0 {
				name = c.String()
			}
			accepted := "-"
			if a.Drafted > 0 {
				accepted = fmt.Sprintf("%.0f%%", 100*float64(a.Accepted)/float64(a.Drafted))
			}
			fmt.Fprintf(&b, "%-28s %-14s %10.1f %8.3f %7.3f to %5.3f %9s %10s\n", name, a.Arm, a.PerSec, a.Ratio, a.Low, a.High, accepted, a.remark())
		}
		fmt.Fprintf(&b, "%-28s noise floor %.3f\n", "", c.Floor)
	}
	for _, g := range s.Gains {
		fmt.Fprintf(&b, "%s: gains of %d cells come to %+.3f, the lowest ratio is %.3f\n", g.Arm, len(s.Cells), g.Sum, g.Least)
	}
	fmt.Fprintln(&b, s.Verdict())
	return b.String()
}

func (a *ArmSummary) remark() string {
	switch {
	case !a.Exact:
		return "DIFFERENT"
	case a.Below:
		return "below"
	}
	return ""
}

// Verdict is the summary in a line.
func (s *Summary) Verdict() string {
	exact := "every reply is the plain one"
	if !s.Exact {
		exact = "SOME REPLIES ARE NOT THE PLAIN ONES"
	}
	return fmt.Sprintf("%d cells: %s; %d arms below plain by more than the noise floor", len(s.Cells), exact, s.Below)
}

// Measures of the picture, in pixels.
const (
	svgLabel  = 220 // of the names
	svgPlot   = 480
	svgRow    = 16
	svgMargin = 24
	svgMost   = 2.0 // the ratio at the right end; the left end is 0
)

// SVG shows each arm's ratio to plain as a dot on its spread, over the cell's noise.
func (s *Summary) SVG() string {
	rows := 0
	for _, c := range s.Cells {
		rows += len(c.Arms) + 1
	}
	var b strings.Builder
	height := 2*svgMargin + rows*svgRow
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", svgLabel+svgPlot+svgMargin, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="8" y="16">ratio to plain decoding, median and spread; grey: noise floor</text>`+"\n")
	fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="black"/>`+"\n", svgX(1), svgX(1), svgMargin, height-svgMargin)
	y := svgMargin + svgRow
	for _, c := range s.Cells {
		fmt.Fprintf(&b, `<text x="8" y="%d" font-weight="bold">%s</text>`+"\n", y, html.EscapeString(c.String()))
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="#ddd"/>`+"\n",
			svgX(1-c.Floor), y+4, svgX(1+c.Floor)-svgX(1-c.Floor), len(c.Arms)*svgRow)
		y += svgRow
		for _, a := range c.Arms {
			colour := "#26c"
			if a.Below || !a.Exact {
				colour = "#c22"
			}
			mid := y - 4 // of the letters
			fmt.Fprintf(&b, `<text x="24" y="%d">%s</text><text x="%d" y="%d">%.3f</text>`+"\n", y, html.EscapeString(a.Arm), svgLabel+svgPlot-24, y, a.Ratio)
			fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="%s"/>`+"\n", svgX(a.Low), svgX(a.High), mid, mid, colour)
			fmt.Fprintf(&b, `<circle cx="%d" cy="%d" r="3" fill="%s"/>`+"\n", svgX(a.Ratio), mid, colour)
			y += svgRow
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// svgX is where a ratio lies.
func svgX(ratio float64) int {
	return svgLabel + int(float64(svgPlot-48)*min(max(ratio, 0), svgMost)/svgMost)
}
