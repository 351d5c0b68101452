// SPDX-License-Identifier: Apache-2.0

// Package recording keeps what an unmodified cluster-autoscaler asked a server of node groups: its
// calls in their order, the answers, and the objects that the answers depended on.
//
// A recording is a file of JSON lines that can be reviewed. All times are shifted to begin at
// [Begin].
package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"
)

// Begin is when each recording begins: at noon of the day on which virtual time begins.
var Begin = time.Date(2000, time.January, 1, 12, 0, 0, 0, time.UTC)

// Step is one line of a recording: an object that changed, or a call.
type Step struct {
	// At is how many seconds after Begin it was. An object that existed before is as old as it was.
	At float64 `json:"at"`
	// Object is the resource and the name of an object that changed, and Is what changed, as a merge
	// patch. Without a patch, the object is gone.
	Object string          `json:"object,omitempty"`
	Is     json.RawMessage `json:"is,omitempty"`
	// Call is the method of a call.
	Call string `json:"call,omitempty"`
	// Loops is how many loops of the caller were like the one that this call begins, if several.
	Loops int `json:"loops,omitempty"`
	// Times is how often the call was made in a row, if several times.
	Times   int             `json:"times,omitempty"`
	Request json.RawMessage `json:"request,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	// Again reports that the answer is the last one to this request. Read completes it.
	Again bool `json:"again,omitempty"`
	// Code and Message are those of an error.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Writes are the patches that the call made, without their preconditions.
	Writes []json.RawMessage `json:"writes,omitempty"`
}

// Time is when the step was, in virtual time.
func (s Step) Time() time.Time { return Begin.Add(time.Duration(s.At * float64(time.Second))) }

// repeats reports whether a call and what came of it equal another one.
func (s Step) repeats(o Step) bool {
	return s.key() == o.key() && s.answers(o) && slices.EqualFunc(s.Writes, o.Writes, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// answers reports whether two answers are equal.
func (s Step) answers(o Step) bool {
	return s.Code == o.Code && s.Message == o.Message && bytes.Equal(s.Answer, o.Answer)
}

func (s Step) key() string { return s.Call + " " + string(s.Request) }

// Read returns the steps of a recording.
func Read(file string) ([]Step, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	var steps []Step
	last := map[string]Step{}
	for lines := json.NewDecoder(bytes.NewReader(text)); lines.More(); {
		var step Step
		if err := lines.Decode(&step); err != nil {
			return nil, fmt.Errorf("read line %d of %s: %w", len(steps)+1, file, err)
		}
		if was := last[step.key()]; step.Again {
			step.Answer, step.Code, step.Message = was.Answer, was.Code, was.Message
		}
		last[step.key()] = step
		steps = append(steps, step)
	}
	return steps, nil
}

// write writes a recording of what began at a time.
func write(file string, steps []Step, begun time.Time) error {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	last := map[string]Step{}
	for _, step := range compact(steps) {
		was, answered := last[step.key()]
		last[step.key()] = step
		if step.Call != "" && answered && step.answers(was) {
			step.Again, step.Answer, step.Code, step.Message = true, nil, "", ""
		}
		if err := lines.Encode(step); err != nil {
			return fmt.Errorf("encode recording: %w", err)
		}
	}
	return os.WriteFile(file, shift(text.Bytes(), Begin.Sub(begun)), 0o644)
}

// Times matches times, in seconds or more exact.
var Times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// shift moves all times in a text.
func shift(text []byte, by time.Duration) []byte {
	return Times.ReplaceAllFunc(text, func(found []byte) []byte {
		at, err := time.Parse(time.RFC3339Nano, string(found))
		if err != nil {
			return found // it only looks like a time
		}
		return []byte(at.Add(by).Format(time.RFC3339Nano))
	})
}

// compact merges calls and loops that repeat the last one.
func compact(steps []Step) []Step {
	var all []Step
	last := -1 // where the last loop begins
	for _, loop := range loops(steps) {
		loop = merge(loop)
		if last >= 0 && slices.EqualFunc(all[last:], loop, func(a, b Step) bool { return a.Object == "" && a.repeats(b) }) {
			all[last].Loops = max(1, all[last].Loops) + 1
			continue
		}
		last = len(all) + max(0, slices.IndexFunc(loop, func(s Step) bool { return s.Call != "" }))
		all = append(all, loop...)
	}
	return all
}

// loops splits the steps before each Refresh, with the objects that changed before it.
func loops(steps []Step) [][]Step {
	var all [][]Step
	begin := 0
	for i, step := range steps {
		if step.Call != "Refresh" {
			continue
		}
		from := i
		for from > begin && steps[from-1].Object != "" {
			from--
		}
		if from > begin {
			all = append(all, steps[begin:from])
		}
		begin = from
	}
	return append(all, steps[begin:])
}

// merge counts calls that repeat the last one.
func merge(loop []Step) []Step {
	var all []Step
	for _, step := range loop {
		if end := len(all) - 1; end >= 0 && step.Call != "" && all[end].repeats(step) {
			all[end].Times = max(1, all[end].Times) + 1
			continue
		}
		all = append(all, step)
	}
	return all
}
