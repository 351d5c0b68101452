// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Replay follows a story: from the initial state of this number, it takes the steps with these names,
// and skips those that are no longer possible. It returns the story up to the first problem, or all
// of it if there is none; then Wrong is empty.
func Replay[S comparable](m Model[S], begin int, names ...string) *Story[S] {
	story := &Story[S]{Begin: m.Begin()[begin]}
	at := story.Begin
	for _, name := range names {
		steps := m.Steps(at)
		i := slices.IndexFunc(stepNames(steps), func(other string) bool { return other == name })
		if i < 0 {
			continue
		}
		story.Steps = append(story.Steps, steps[i])
		if at, story.Wrong = steps[i].To, steps[i].Broken; story.Wrong != "" {
			return story
		}
	}
	if story.Wrong = story.repeats(); story.Wrong == "" {
		story.Wrong = expand(m, at).wrong
	}
	return story
}

// repeats returns what is wrong if the last steps, without a fault, lead back to where they began.
func (s *Story[S]) repeats() string {
	last := len(s.Steps) - 1
	for i := last; i >= 0 && !s.Steps[i].Fault; i-- {
		from := s.Begin
		if i > 0 {
			from = s.Steps[i-1].To
		}
		if from == s.Steps[last].To {
			return endlessText(last - i + 1)
		}
	}
	return ""
}

func endlessText(steps int) string {
	return fmt.Sprintf("I4: The last %d steps repeat forever, though nothing fails.", steps)
}

// stepNames returns what happens in steps. Of steps with the same description, the second and later
// ones get a number.
func stepNames[S comparable](steps []Step[S]) []string {
	names, count := make([]string, len(steps)), map[string]int{}
	for i, step := range steps {
		names[i] = step.What
		if count[step.What]++; count[step.What] > 1 {
			names[i] = fmt.Sprintf("%s (%d)", step.What, count[step.What])
		}
	}
	return names
}

// replayLine returns the line of a table in search_test.go that replays a story.
func replayLine[S comparable](m Model[S], s *Story[S]) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Entry(%q, replay(%s, %d", s.Wrong, modelText(m), slices.Index(m.Begin(), s.Begin))
	at := s.Begin
	for _, step := range s.Steps {
		steps := m.Steps(at)
		i := slices.IndexFunc(steps, func(other Step[S]) bool { return other == step })
		fmt.Fprintf(&b, ", %q", stepNames(steps)[i])
		at = step.To
	}
	return b.String() + ")),"
}

// modelText returns a model as Go source.
func modelText(m any) string {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer {
		return inPackage(v)
	}
	v = v.Elem()
	name := v.Type().Name()
	constructor := map[string]string{"Reserve": "New"}[name]
	if constructor == "" {
		constructor = "New" + name
	}
	var fields []string
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() {
			fields = append(fields, f.Name+": "+inPackage(v.Field(i)))
		}
	}
	return fmt.Sprintf("%s(%s{%s})", constructor, name, strings.Join(fields, ", "))
}

// inPackage returns a value as Go source of this package.
func inPackage(v reflect.Value) string {
	return strings.NewReplacer("github.com/evenkeel/evenkeel/test/explore.", "", "explore.", "").Replace(fmt.Sprintf("%#v", v.Interface()))
}
