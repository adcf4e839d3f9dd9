package report

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"

	g "maragu.dev/gomponents"
)

// nodes are parts of the page: texts among them are escaped when it is written.
type nodes = g.Group

// el is an element of a class, which may be empty.
func el(name, class string, in ...g.Node) g.Node {
	if class == "" {
		return g.El(name, in...)
	}
	return g.El(name, g.Attr("class", class), nodes(in))
}

// each makes a node of every value.
func each[T any](list []T, one func(T) g.Node) g.Node { return g.Map(list, one) }

// word is a text from outside, which is kept from turning what is around it.
func word(s string) g.Node { return el("bdi", "", g.Text(s)) }

// policy forbids the page all but its own style: if a text got through as an element, it could load and run nothing.
func policy() string {
	sum := sha256.Sum256([]byte(pageCSS))
	return "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

func (p *Page) document() g.Node {
	return g.El("html", g.Attr("lang", "en"), p.head(), g.El("body", p.header(),
		el("main", "", p.numbers(), p.verdict(), p.overTime(), p.guesses(), p.shapes(), p.errors(), p.rows(), p.made()),
		el("footer", "", el("p", "", g.Text("Made on "+clock(p.Made)+" by tfbatch "), word(short(p.Version)), g.Text(". This page loads nothing and runs nothing.")))))
}

func (p *Page) head() g.Node {
	meta := func(name, content string) g.Node {
		return g.El("meta", g.Attr("name", name), g.Attr("content", content))
	}
	return g.El("head", g.El("meta", g.Attr("charset", "utf-8")),
		g.El("meta", g.Attr("http-equiv", "Content-Security-Policy"), g.Attr("content", policy())),
		meta("viewport", "width=device-width, initial-scale=1"), meta("color-scheme", "light dark"),
		g.El("title", g.Text(short(p.Name)+": "+p.State)),
		g.El("link", g.Attr("rel", "icon"), g.Attr("href", "data:,")), // no browser looks for one then
		g.El("style", g.Raw(pageCSS)))
}

func (p *Page) header() g.Node {
	return el("header", "", el("p", "badge "+string(p.Mood), g.Text(p.State)), el("h1", "", word(short(p.Name))), el("p", "about", word(short(p.About))))
}

// section is a part of the page with a heading.
func section(id, title string, in ...g.Node) g.Node {
	return g.El("section", g.Attr("aria-labelledby", "h-"+id), g.El("h2", g.Attr("id", "h-"+id), g.Text(title)), nodes(in))
}

func (p *Page) numbers() g.Node {
	return g.El("section", g.Attr("class", "tiles"), g.Attr("aria-label", "Numbers"), each(tiles(p, p.timeline), func(t tile) g.Node {
		return el("div", "tile", el("p", "name", g.Text(t.Name)), el("p", "value", g.Text(t.Value)), el("p", "text", g.Text(t.Text)))
	}))
}

func (p *Page) verdict() g.Node {
	v := &p.Verdict
	return el("section", "card verdict "+string(v.Mood), g.Attr("aria-labelledby", "h-verdict"),
		g.El("h2", g.Attr("id", "h-verdict"), g.Text("Verification: "+v.Word)),
		el("ul", "", each(v.Lines, func(line string) g.Node { return el("li", "", word(text(line))) })))
}

func (p *Page) overTime() g.Node {
	if p.timeline == nil {
		return section("time", "Over time", el("p", "card none", g.Text("No measurements: "), word(text(p.Missing))))
	}
	return section("time", "Over time", el("div", "charts", each(p.timeline.charts(), chart.node)))
}

func (p *Page) guesses() g.Node {
	if p.timeline == nil || len(p.timeline.drafting()) == 0 {
		return nil
	}
	return section("draft", "Drafting", el("div", "charts", each(p.timeline.drafting(), chart.node)))
}

func (p *Page) shapes() g.Node {
	return section("shape", "Replies", el("div", "charts",
		p.Texts.chart("replies", "Reply lengths", "replies").node(),
		p.Prompts.chart("prompts", "Prompt lengths", "prompts").node(),
		counts("finishes", "How replies ended", "Finish", "Replies", "bar", p.Finishes, p.Replies)))
}

func (p *Page) errors() g.Node {
	if p.Errors == 0 {
		return section("errors", "Errors", el("p", "card none", g.Text("No row has failed.")))
	}
	return section("errors", "Errors", counts("errors", "Rows without reply, by code", "Code", "Rows", "bar bad", p.Codes, p.Errors,
		each(p.Failures, func(r Row) g.Node { return el("div", "row", r.name(""), el("p", "failed", word(text(r.Error)))) })))
}

func (p *Page) rows() g.Node {
	note, none := g.Node(nil), g.Node(nil)
	if p.Note != "" {
		note = el("p", "note", word(text(p.Note)))
	}
	if len(p.Samples) == 0 {
		none = el("p", "card none", g.Text("No row has a reply yet."))
	}
	return section("rows", "Rows", note, none, each(p.Samples, Row.node))
}

// name says which row it is.
func (r Row) name(why string) g.Node {
	return el("p", "id", word(short(r.ID)), g.Text(" "), el("span", "", g.Text("row "+count(r.Index)+why)))
}

func (r Row) node() g.Node {
	return el("article", "card row", r.name(", "+r.Why),
		each(r.Turns, func(t Turn) g.Node { return nodes{el("p", "role", word(short(t.Role))), said("said asked", t.Text)} }),
		each(r.Replies, func(a Reply) g.Node {
			facts := fmt.Sprintf("%s to a prompt of %s, ended by ", plural(int64(a.Tokens), "token", "tokens"), count(int64(a.Prompt)))
			return nodes{el("p", "role", g.Text("reply "), el("span", "", g.Text(facts), word(short(a.Finish)))), said("said", a.Text)}
		}))
}

// said is a text as it stands, in its own direction.
func said(class, s string) g.Node {
	return g.El("div", g.Attr("class", class), g.Attr("dir", "auto"), g.Attr("tabindex", "0"), g.Text(text(s)))
}

func (p *Page) made() g.Node {
	in := nodes{el("dl", "", each(p.Facts, func(f Fact) g.Node {
		return nodes{el("dt", "", word(short(f.Name))), el("dd", "", word(text(f.Value)))}
	}))}
	if len(p.Runs) > 0 {
		var rows [][]string
		for _, r := range p.Runs[max(0, len(p.Runs)-mostRuns):] {
			rows = append(rows, []string{clock(r.Started), short(r.Version)})
		}
		in = append(in, behind("Runs: "+count(int64(len(p.Runs))), []string{"Started", "tfbatch"}, rows))
	}
	if p.Job != "" {
		in = append(in, el("details", "", el("summary", "", g.Text("The job as it ran")), said("said code", p.Job)))
	}
	return section("made", "What made it", el("div", "card", in))
}

// mostRuns is how many runs are listed, the last ones.
const mostRuns = 100

// behind is a table that opens on demand.
func behind(title string, head []string, rows [][]string) g.Node {
	return el("details", "", el("summary", "", g.Text(title)), g.El("div", g.Attr("class", "scroll"), g.Attr("tabindex", "0"), el("table", "",
		el("thead", "", el("tr", "", each(head, column))),
		el("tbody", "", each(rows, func(row []string) g.Node {
			return el("tr", "", each(row, func(cell string) g.Node { return el("td", "", word(cell)) }))
		})))))
}

func column(name string) g.Node { return g.El("th", g.Attr("scope", "col"), g.Text(name)) }

// counts is a table with a bar in each line: drawing and table in one.
func counts(id, title, what, unit, class string, list []Count, whole int64, under ...g.Node) g.Node {
	if len(list) == 0 {
		return nil
	}
	return g.El("figure", g.Attr("class", "card"), g.Attr("id", id), el("figcaption", "", el("h3", "", g.Text(title))),
		el("table", "bars",
			el("thead", "", el("tr", "", column(what), column(unit), column("Share"), g.El("th", g.Attr("scope", "col"), el("span", "unseen", g.Text("Bar"))))),
			el("tbody", "", each(list, func(c Count) g.Node {
				return el("tr", "", g.El("th", g.Attr("scope", "row"), word(short(c.Name))), el("td", "", g.Text(count(c.N))), el("td", "", g.Text(share(c.N, whole))),
					el("td", "wide", g.El("svg", g.Attr("viewBox", "0 0 100 10"), g.Attr("preserveAspectRatio", "none"), g.Attr("aria-hidden", "true"),
						shape("rect", class, "x", "0", "y", "0", "width", float(bar(c.N, whole)), "height", "10"))))
			}))), nodes(under))
}

// shape is an element of a drawing, its attributes in pairs.
func shape(name, class string, pairs ...string) g.Node {
	in := nodes{g.Attr("class", class)}
	for i := 0; i < len(pairs); i += 2 {
		in = append(in, g.Attr(pairs[i], pairs[i+1]))
	}
	return g.El(name, in)
}

func float(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func (c chart) node() g.Node {
	if len(c.table) == 0 {
		return g.El("figure", g.Attr("class", "card"), g.Attr("id", c.id), el("figcaption", "", el("h3", "", g.Text(c.title))), el("p", "none", g.Text("Nothing to draw yet.")))
	}
	under := "x"
	if c.each {
		under = "x each"
	}
	label := func(s string) g.Node { return el("span", "", g.Text(s)) }
	return g.El("figure", g.Attr("class", "card"), g.Attr("id", c.id),
		el("figcaption", "", el("h3", "", g.Text(c.title)), el("p", "", g.Text(c.text))),
		el("div", "plot",
			el("div", "y", g.Attr("aria-hidden", "true"), each(c.y, label)), c.svg(),
			el("div", under, g.Attr("aria-hidden", "true"), each(c.x, label))),
		behind("Table: "+c.title, c.columns, c.table))
}

func (c chart) svg() g.Node {
	in := nodes{
		g.Attr("viewBox", fmt.Sprintf("0 0 %d %d", wide, high)), g.Attr("preserveAspectRatio", "none"), g.Attr("role", "img"),
		g.Attr("aria-label", c.title+", "+c.unit+". "+c.text),
		shape("path", "grid", "d", fmt.Sprintf("M0 0H%d M0 %dH%d M0 %dH%d", wide, high/2, wide, high, wide)),
	}
	if c.path != "" {
		in = append(in, shape("path", "area", "d", fmt.Sprintf("%sL%d %dL0 %dZ", c.path, wide, high, high)), shape("path", "line", "d", c.path))
	}
	for _, b := range c.rects {
		in = append(in, g.El("rect", g.Attr("class", "bar"), g.Attr("x", float(b.x)), g.Attr("y", float(b.y)),
			g.Attr("width", float(b.w)), g.Attr("height", float(b.h)), el("title", "", g.Text(b.title))))
	}
	for _, y := range c.across {
		in = append(in, shape("path", "rule", "d", fmt.Sprintf("M0 %sH%d", float(y), wide)))
	}
	for _, x := range c.breaks {
		in = append(in, shape("path", "break", "d", fmt.Sprintf("M%s 0V%d", float(x), high)))
	}
	return g.El("svg", in)
}
