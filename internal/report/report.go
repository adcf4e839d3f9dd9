// Package report draws a job as one page of HTML that needs nothing else: no script, no network, no other file.
//
// Start with [Page] and [Write]. Whatever text a page holds may be hostile: it is escaped by its place, control
// characters are made visible, and what is long is cut with a word.
package report

import (
	_ "embed"
	"io"
	"strings"
	"time"

	"tfbatch/internal/metrics"
)

// Page is what is known of a job.
type Page struct {
	Name    string
	State   string // in a few words
	Mood    Mood   // of the state
	About   string // one line: what made it, on what
	Made    time.Time
	Version string // of what made the page

	Verdict Verdict

	Total                          int64 // rows of the input; 0: not known
	Rows, Errors, Replies          int64
	PromptTokens, CompletionTokens int64

	Finishes, Codes []Count
	Prompts, Texts  Lengths // tokens of prompts and replies

	Series  *metrics.Series // nil: there are no measurements
	Missing string          // why there are none

	Failures, Samples []Row
	Note              string // on the samples

	Facts []Fact
	Runs  []Run
	Job   string // as JSON

	timeline *timeline // of Series
}

// Mood is the colour of a word.
type Mood string

// The moods.
const (
	Good  Mood = "good"
	Quiet Mood = "quiet"
	Bad   Mood = "bad"
)

// Verdict is what a check of the files came to.
type Verdict struct {
	Mood  Mood
	Word  string
	Lines []string
}

// Count is how often something happened.
type Count struct {
	Name string
	N    int64
}

// Fact is a line of what made the job.
type Fact struct{ Name, Value string }

// Run is one of the runs that the job took.
type Run struct {
	Started time.Time
	Version string
}

// Row is a row to be shown.
type Row struct {
	ID      string
	Index   int64
	Why     string // it is shown
	Turns   []Turn // what was asked; none: not known
	Replies []Reply
	Error   string // code and message of a row that failed
}

// Turn is one message of a prompt, or all of a prompt that is no chat.
type Turn struct{ Role, Text string }

// Reply is one reply of a row.
type Reply struct {
	Text           string
	Finish         string
	Prompt, Tokens int // tokens
}

//go:embed page.css
var pageCSS string

// doctype begins every page.
const doctype = "<!doctype html><!-- tfbatch report -->\n"

// IsPage reports whether a file that begins so is a page of ours.
func IsPage(head []byte) bool { return strings.HasPrefix(string(head), doctype) }

// Write draws the page.
func Write(w io.Writer, p *Page) error {
	page := *p
	page.timeline = newTimeline(p.Series)
	if _, err := io.WriteString(w, doctype); err != nil {
		return err
	}
	return page.document().Render(w)
}
