// Package row holds the value that flows through a job: one prompt and what becomes
// of it. It also defines the hashes that a reply is known by. It reads no files, knows
// no tokenizer and no model.
//
// Start with [Row]; the hashes are in hash.go and root.go.
package row

import "encoding/json"

// Row is one prompt of the input and its replies. Exactly one stage owns a row at a
// time. Each group of fields is written by the stage it names and only read after it.
type Row struct {
	// Written by read.
	Index    int64  // position among the rows of the input, from 0
	Line     int64  // line of the input, from 1
	Offset   int64  // byte of the (decompressed) input where the line starts
	ID       string // custom_id, or made from Index when the line has none
	Prompt   Prompt
	Sampling Sampling
	Sum      [16]byte // head of the SHA-256 of the line
	Cost     int64    // what the row holds of the window between read and write

	// Written by encode.
	Tokens     []int32 // the prompt's ids
	PromptHash Digest

	// Written by generate, one per sample; finish adds text and hashes.
	Choices []Choice

	// Err is set by the stage that gave the row up. Later stages pass the row on.
	Err *Error
}

// Prompt is what a line asked. Exactly one of Messages, Text and IDs is set.
type Prompt struct {
	Messages json.RawMessage // a JSON array of messages for the chat template
	Kwargs   json.RawMessage // a JSON object of further template variables, or nil
	Text     string          // text that is encoded as it stands
	IDs      []int32         // ids that are used as they stand
}

// Chat reports whether the prompt goes through the chat template.
func (p Prompt) Chat() bool { return p.Messages != nil }

// Sampling is how the replies of one row are drawn. Zero TopK, MinP and penalties mean
// off; Temperature 0 is greedy; RepetitionPenalty 1 is off.
type Sampling struct {
	Temperature       float32
	TopP              float32
	TopK              int
	MinP              float32
	RepetitionPenalty float32
	PresencePenalty   float32
	FrequencyPenalty  float32
	LogitBias         map[int32]float32
	N                 int
	MaxTokens         int
	Stop              []string
	StopIDs           []int32
	Seed              uint64
	ResponseFormat    json.RawMessage // OpenAI's response_format; nil: any text
	ReturnTokenIDs    bool            // the row's line has the ids of prompt and replies
}

// Finish says why a reply ended.
type Finish string

// The reasons a reply ends. Context is the model's window, which readers of the
// OpenAI format know as "length" too.
const (
	EndToken   Finish = "eos"     // the model's own end token, or one of the row's stop ids
	StopString Finish = "stop"    // a stop string was completed
	Length     Finish = "length"  // max_tokens
	Context    Finish = "context" // no position left in the context
)

// Reason is the finish_reason of the OpenAI format: "stop" or "length".
func (f Finish) Reason() string {
	if f == Length || f == Context {
		return "length"
	}
	return "stop"
}

// Choice is one reply.
type Choice struct {
	Tokens []int32 // retained ids, the end token or the one that completed a stop string included
	Finish Finish

	Text      string
	TokenHash Digest
}
