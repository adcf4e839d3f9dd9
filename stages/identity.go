package stages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// identity is all that a job's replies depend on. Runs of one identity give the same bytes,
// so that one may go on where another was broken off.
type identity struct {
	Job        json.RawMessage `json:"job"` // canonical
	Arithmetic string          `json:"arithmetic"`
	Model      ModelFiles      `json:"model"`
	// Input is the digest of the input as stored: zero for standard input, whose lines are
	// compared one by one.
	Input row.Digest `json:"input_sha256"`
}

// Identity is all that the replies of a job depend on, as bytes: equal where the replies are. It reads the input through.
func Identity(job *jobs.Job, p *Provenance) ([]byte, error) {
	src, err := openSource(job.Input.Path.File, nil)
	if err != nil {
		return nil, fmt.Errorf("input %s: %w", job.Input.Path.Name, err)
	}
	defer src.close()
	id := identity{Job: job.Canonical(), Arithmetic: p.Arithmetic, Model: p.Model}
	if id.Input, err = src.digest(); err != nil {
		return nil, fmt.Errorf("input %s: %w", job.Input.Path.Name, err)
	}
	return encodeJSON(id), nil
}

// Differences lists by name what two identities differ in. Was may come from anywhere.
func Differences(was, is []byte) []string {
	var old, now identity
	if err := json.Unmarshal(was, &old); err != nil {
		return []string{fmt.Sprintf("all of it: what is there is no job of this tfbatch (%v)", err)}
	}
	if err := json.Unmarshal(is, &now); err != nil {
		panic(fmt.Sprintf("stages: identity of our own: %v", err))
	}
	list := old.differences(now)
	if len(list) == 0 {
		list = []string{"how it is written down: another version of tfbatch"}
	}
	if more := len(list) - maxDifferences; more > 0 {
		list = append(list[:maxDifferences], fmt.Sprintf("and %d more", more))
	}
	return list
}

// maxDifferences bounds what a stranger's identity can put on a line.
const maxDifferences = 20

// Changed refuses to go on with a folder that something else has begun.
type Changed struct {
	Dir         string
	Differences []string // "sampling.seed: 42 -> 43"
}

func (c *Changed) Error() string {
	return fmt.Sprintf("%s was begun with something else (was -> is): %s; set it back, choose another --out, or begin anew with --overwrite",
		c.Dir, strings.Join(c.Differences, "; "))
}

// differences lists what is not the same. Shards and inputs that are not known are left out.
func (was identity) differences(is identity) []string {
	if is.Model.Shards == nil || was.Model.Shards == nil {
		was.Model.Shards, is.Model.Shards = nil, nil
	}
	if is.Input == (row.Digest{}) || was.Input == (row.Digest{}) {
		was.Input, is.Input = row.Digest{}, row.Digest{}
	}
	old, now := was.values(), is.values()
	var names []string
	for _, m := range []map[string]string{old, now} {
		for name := range m {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var list []string
	for _, name := range slices.Compact(names) {
		if old[name] != now[name] {
			list = append(list, fmt.Sprintf("%s: %s -> %s", name, excerpt(old, name), excerpt(now, name)))
		}
	}
	return list
}

// maxExcerpt is the longest value that is shown as a whole: longer than a digest.
const maxExcerpt = 80

func excerpt(values map[string]string, name string) string {
	v, ok := values[name]
	switch {
	case !ok:
		return "none"
	case len(v) > maxExcerpt:
		return strings.ToValidUTF8(v[:maxExcerpt], "") + "…"
	}
	return v
}

// values is the identity as one list of named values.
func (id identity) values() map[string]string {
	out := map[string]string{}
	d := json.NewDecoder(bytes.NewReader(encodeJSON(id)))
	d.UseNumber()
	var all any
	_ = d.Decode(&all) // our own JSON
	flatten(out, "", all)
	return out
}

// flatten names every value by its path. A job's values have the names of the job file.
func flatten(into map[string]string, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			into[name] = "{}"
		}
		for key, one := range v {
			flatten(into, strings.TrimPrefix(strings.TrimPrefix(name+"."+key, "."), "job."), one)
		}
	case []any:
		if len(v) == 0 {
			into[name] = "[]"
		}
		for i, one := range v {
			flatten(into, name+"["+strconv.Itoa(i)+"]", one)
		}
	case string:
		into[name] = v
	default:
		into[name] = fmt.Sprint(v)
	}
}
