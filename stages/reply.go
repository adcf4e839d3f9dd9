package stages

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// reply is a line of the output: OpenAI's batch result, and what tfbatch adds to it. Field
// order is the order in the file. Nothing here depends on when or how the row was run.
type reply struct {
	ID       string   `json:"id"`
	CustomID string   `json:"custom_id"`
	Response response `json:"response"`
	Error    *failure `json:"error"`
	Place    *place   `json:"tfbatch,omitempty"` // of a row that failed
}

type response struct {
	StatusCode int    `json:"status_code"`
	RequestID  string `json:"request_id"`
	Body       any    `json:"body"`
}

type failure struct {
	Code    row.Code `json:"code"`
	Message string   `json:"message"`
}

// errorBody is the body of a failed request in the OpenAI API.
type errorBody struct {
	Error struct {
		Message string   `json:"message"`
		Type    string   `json:"type"`
		Code    row.Code `json:"code"`
	} `json:"error"`
}

// place says which line failed.
type place struct {
	Row    int64 `json:"row"`
	Line   int64 `json:"line"`
	Offset int64 `json:"offset"`
}

type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"` // the job's date, 0 without one: the time of a run is no part of its result
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   usage    `json:"usage"`

	PromptIDs []int32 `json:"prompt_token_ids,omitempty"` // where return_token_ids asks for them, as vLLM has it
}

type choice struct {
	Index        int       `json:"index"`
	Message      *message  `json:"message,omitempty"` // of a chat
	Text         *string   `json:"text,omitempty"`    // of a completion
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason string    `json:"finish_reason"`
	TokenIDs     []int32   `json:"token_ids,omitempty"`
	Receipt      receipt   `json:"tfbatch"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// receipt is what a reply can be checked by.
type receipt struct {
	Row              int64      `json:"row"`
	Sample           int        `json:"sample"`
	Seed             uint64     `json:"seed"`
	PromptSHA256     row.Digest `json:"prompt_sha256"`
	TokenSHA256      row.Digest `json:"token_sha256"`
	PromptTokens     int        `json:"prompt_tokens"`
	CompletionTokens int        `json:"completion_tokens"`
	Finish           row.Finish `json:"finish"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func newReply(job *jobs.Job, r *row.Row) reply {
	sum := sha256.Sum256([]byte(r.ID))
	key := hex.EncodeToString(sum[:12])
	out := reply{ID: "batch_req_" + key, CustomID: r.ID}
	out.Response.RequestID = "req_" + key
	if r.Err != nil {
		out.fail(r)
		return out
	}
	out.Response.StatusCode = 200
	out.Response.Body = newCompletion(job, r, key)
	return out
}

// fail writes the error twice: readers of batch files look in one of two places.
func (out *reply) fail(r *row.Row) {
	var body errorBody
	body.Error.Message, body.Error.Code = r.Err.Message, r.Err.Code
	body.Error.Type = "invalid_request_error"
	if r.Err.Code.Status() >= 500 {
		body.Error.Type = "server_error"
	}
	out.Response.StatusCode, out.Response.Body = r.Err.Code.Status(), body
	out.Error = &failure{r.Err.Code, r.Err.Message}
	out.Place = &place{r.Index, r.Line, r.Offset}
}

func newCompletion(job *jobs.Job, r *row.Row, key string) completion {
	out := completion{ID: "cmpl-" + key, Object: "text_completion", Created: epoch(job), Model: shortName(job.Model.Path.Name)}
	if r.Prompt.Chat() {
		out.ID, out.Object = "chatcmpl-"+key, "chat.completion"
	}
	out.Usage.PromptTokens = len(r.Tokens)
	for sample, c := range r.Choices {
		next := choice{Index: sample, FinishReason: c.Finish.Reason(), Receipt: receipt{
			Row: r.Index, Sample: sample, Seed: r.Sampling.Seed,
			PromptSHA256: r.PromptHash, TokenSHA256: c.TokenHash,
			PromptTokens: len(r.Tokens), CompletionTokens: len(c.Tokens), Finish: c.Finish,
		}}
		if r.Sampling.ReturnTokenIDs {
			out.PromptIDs, next.TokenIDs = r.Tokens, c.Tokens
		}
		if r.Prompt.Chat() {
			next.Message = &message{Role: "assistant", Content: c.Text}
		} else {
			next.Text = &c.Text
		}
		out.Choices = append(out.Choices, next)
		out.Usage.CompletionTokens += len(c.Tokens)
	}
	out.Usage.TotalTokens = out.Usage.PromptTokens + out.Usage.CompletionTokens
	return out
}

// epoch is the job's date in Unix seconds.
func epoch(job *jobs.Job) int64 {
	day, err := time.Parse(jobs.DateLayout, job.Prompt.Date)
	if err != nil {
		return 0 // no date
	}
	return day.Unix()
}
