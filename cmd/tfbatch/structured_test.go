package main

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// valid holds every reply of an output to a schema, and their count to a number: valid schema.json rows.jsonl 120.
func valid(ts *testscript.TestScript, _ bool, args []string) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	c := jsonschema.NewCompiler()
	ts.Check(c.AddResource("schema.json", doc))
	schema, err := c.Compile("schema.json")
	ts.Check(err)
	replies := 0
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		var row struct {
			Response struct {
				Body struct {
					Choices []struct{ Message struct{ Content string } }
				}
			}
		}
		ts.Check(json.Unmarshal([]byte(line), &row))
		for _, choice := range row.Response.Body.Choices {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(choice.Message.Content))
			ts.Check(err)
			ts.Check(schema.Validate(value))
			replies++
		}
	}
	if want, err := strconv.Atoi(args[2]); err != nil || replies != want {
		ts.Fatalf("%d replies, want %s", replies, args[2])
	}
}
