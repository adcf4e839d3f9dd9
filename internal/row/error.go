package row

import "net/http"

// Code names a kind of row failure. The strings are part of the output format and never
// change their meaning.
type Code string

// The codes of row failures.
const (
	InvalidJSON      Code = "invalid_json"            // not one JSON object, or a key twice
	InvalidUTF8      Code = "invalid_utf8"            // bytes or escapes that are no Unicode text
	LineTooLong      Code = "line_too_long"           // over input.max_line_bytes
	MissingField     Code = "missing_field"           // a field that the line's form needs
	InvalidValue     Code = "invalid_value"           // a field of the wrong type or out of range
	UnsupportedField Code = "unsupported_field"       // a field or value that is not known or not built
	DuplicateID      Code = "duplicate_id"            // an id that an earlier row had
	ModelNotFound    Code = "model_not_found"         // the line asks for another model than the job's
	ContextLength    Code = "context_length_exceeded" // prompt and max_tokens do not fit
	TemplateError    Code = "template_error"          // the chat template refused the row
	Unsatisfied      Code = "grammar_unsatisfied"     // no reply of the model can have the row's response_format
	NonfiniteLogits  Code = "nonfinite_logits"        // the model gave NaN or Inf
	Internal         Code = "internal"                // a fault of ours that touches this row alone
)

// Status is the HTTP status that stands for the code in the OpenAI format.
func (c Code) Status() int {
	switch c {
	case ModelNotFound:
		return http.StatusNotFound
	case NonfiniteLogits, Internal:
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// Error is why a row has no reply. It is data: the job goes on.
type Error struct {
	Code    Code
	Message string
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }
