// Package jobs reads jobs.yaml into checked, fully defaulted [Job] values. Every default
// of tfbatch is written here and nowhere else; deeper code takes plain values. The package
// reads no other file and no environment.
//
// Start with [Parse]. It refuses what it does not know: an unknown key, a key twice, a
// second document, a value of the wrong type, and by name what the format foresees but
// this version does not do. Every error has file, line and column.
package jobs

import "encoding/json"

// Job is one job with every value set.
type Job struct {
	Name  string `json:"name"` // a safe file name, unique in its file
	Model Model  `json:"model"`
	KV    string `json:"kv"` // how K and V are stored: "bf16" or "f32"
	// Arithmetic is left out where it is the default, so that older digests hold.
	Arithmetic Arithmetic `json:"arithmetic,omitzero"`
	Sampling   Sampling   `json:"sampling"`
	Input      Input      `json:"input"`
	Prompt     Prompt     `json:"prompt"`
	Limits     Limits     `json:"limits"`

	// What follows cannot change a row of the output, so it is no part of the digest.
	Output  Output  `json:"-"`
	Run     Run     `json:"-"`
	Drafter Drafter `json:"-"`
	Audit   float64 `json:"-"` // percent of the rows that are made once more, plainly, and compared
}

// Arithmetic is how products are computed, by the name of the contract.
type Arithmetic string

// The arithmetics. I8 rounds the inputs of quantized weights to 8 bits.
const (
	FMA Arithmetic = "fma-v1"
	I8  Arithmetic = "i8-v1"
)

// IsZero says that it is the default.
func (a Arithmetic) IsZero() bool { return a == FMA }

// Model names the checkpoint.
type Model struct {
	Path    Path     `json:"path"`    // "builtin:NAME", the folder of a snapshot, or org/name[@revision] of huggingface_hub's cache
	Aliases []string `json:"aliases"` // further names that a row may ask for
}

// Path is a file or folder that a job names. Name is what the job file has; File is Name
// taken from the job file's folder. Only Name is part of the digest.
type Path struct{ Name, File string }

// MarshalText writes Name.
func (p Path) MarshalText() ([]byte, error) { return []byte(p.Name), nil }

// Sampling is how replies are drawn; a row's own body may override it. Zero TopK and MinP
// are off, as are a RepetitionPenalty of 1 and the other penalties at 0.
type Sampling struct {
	Temperature       float32           `json:"temperature"` // 0 is greedy
	TopP              float32           `json:"top_p"`
	TopK              int               `json:"top_k"`
	MinP              float32           `json:"min_p"`
	RepetitionPenalty float32           `json:"repetition_penalty"`
	PresencePenalty   float32           `json:"presence_penalty"`
	FrequencyPenalty  float32           `json:"frequency_penalty"`
	LogitBias         map[int32]float32 `json:"logit_bias"` // token id to what is added to its logit
	N                 int               `json:"n"`          // replies per row
	MaxTokens         int               `json:"max_tokens"`
	Stop              []string          `json:"stop"`     // strings that end a reply and are cut from it
	StopIDs           []int32           `json:"stop_ids"` // ids that end a reply, beside the model's own
	Seed              uint64            `json:"seed"`
	ResponseFormat    json.RawMessage   `json:"response_format,omitempty"`  // what replies are held to, as in a line; nil: any text
	ReturnTokenIDs    bool              `json:"return_token_ids,omitempty"` // a row's line has the ids of prompt and replies
}

// Input is where rows come from.
type Input struct {
	Path         Path     `json:"path"`         // "-" is standard input
	Format       string   `json:"format"`       // one of Formats
	IDField      string   `json:"id_field"`     // the key that holds a row's id
	IgnoreFields []string `json:"ignore"`       // keys of a line that are passed over
	OnDuplicate  string   `json:"on_duplicate"` // "error" or "skip"
	OnBadLine    string   `json:"on_bad_line"`  // "error-row" or "stop"
	MaxLineBytes int64    `json:"max_line_bytes"`
	MaxRows      int64    `json:"max_rows"` // 0 is no limit
}

// The formats of an input line. Auto decides by the keys of each line.
const (
	FormatAuto      = "auto"
	FormatOpenAI    = "openai"    // {custom_id, method, url, body}
	FormatAnthropic = "anthropic" // {custom_id, params}
	FormatMessages  = "messages"  // {messages}
	FormatPrompt    = "prompt"    // {prompt}
	FormatTokens    = "tokens"    // {prompt_token_ids}
)

// What to do with a bad line and with an id that came before.
const (
	OnBadLineRow     = "error-row"
	OnBadLineStop    = "stop"
	OnDuplicateError = "error"
	OnDuplicateSkip  = "skip"
)

// Prompt is how a row becomes the text that the model continues.
type Prompt struct {
	Template Path   `json:"template"` // TemplateCheckpoint, or a Jinja file
	System   string `json:"system"`   // put before rows that bring no system message; empty is none
	Date     string `json:"date"`     // YYYY-MM-DD that strftime_now sees; empty refuses templates that ask
	Kwargs   Kwargs `json:"kwargs"`   // further template variables
	Raw      bool   `json:"raw"`      // {prompt} lines are encoded as they stand
}

// TemplateCheckpoint is the chat template that comes with the checkpoint.
const TemplateCheckpoint = "checkpoint"

// Limits is what a row may cost and what a job may lose.
type Limits struct {
	Context      string `json:"context"` // ContextError or ContextStop
	MaxRowErrors Amount `json:"-"`       // of the rows; more than that and the job counts as failed
}

// A prompt that leaves no room for one token is always an error. A prompt whose max_tokens
// reach past the context is refused, or its reply stops there.
const (
	ContextError = "error"
	ContextStop  = "stop"
)

// Output is where results go: Dir/Name/rows.jsonl and what belongs to it.
type Output struct {
	Dir Path
}

// Run is how the work is done. No value here changes a token.
type Run struct {
	Device  string // "auto", or a device that the command knows
	Lanes   int    // rows that run at once; 0 lets the command choose
	Chunk   int    // prompt tokens in one forward
	Threads int    // 0 is every core
	Memory  Amount // bytes, or a share of the machine's memory
}

// Auto lets the command choose.
const Auto = "auto"

// fallback is the job that a file changes.
func fallback() Job {
	return Job{
		KV:         "bf16",
		Arithmetic: FMA,
		Sampling: Sampling{
			TopP:              1,
			RepetitionPenalty: 1,
			LogitBias:         map[int32]float32{},
			N:                 1,
			MaxTokens:         1024,
			Stop:              []string{},
			StopIDs:           []int32{},
		},
		Input: Input{
			Format:       FormatAuto,
			IDField:      "custom_id",
			IgnoreFields: []string{},
			OnDuplicate:  OnDuplicateError,
			OnBadLine:    OnBadLineRow,
			MaxLineBytes: 16 << 20,
		},
		Model:  Model{Aliases: []string{}},
		Prompt: Prompt{Template: Path{Name: TemplateCheckpoint}},
		Limits: Limits{Context: ContextError},
		Output: Output{Dir: Path{Name: "out"}},
		Run:    Run{Device: Auto, Chunk: 512, Memory: Amount{Percent: 70}},

		Drafter: Drafter{Guesses: DraftAuto, Copy: true},
	}
}
