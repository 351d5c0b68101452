// SPDX-License-Identifier: Apache-2.0

package demand

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Columns are the names of columns in a CSV file. time, cpu and memory are required; a file has
// either duration or end, or neither.
var Columns = []string{"time", "cpu", "memory", "duration", "end", "count"}

// required is the number of columns, of the above, that each file has.
const required = 3

// layouts are the forms of a time, in addition to seconds since 1970. Without an offset, it is UTC.
var layouts = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04"}

// ReadCSV reads a trace. The first line names the columns, in any order. The error names the line.
func ReadCSV(from io.Reader) (Trace, error) {
	file := csv.NewReader(from)
	file.ReuseRecord, file.TrimLeadingSpace, file.Comment = true, true, '#'
	head, err := file.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the trace is empty: its first line names the columns, for example time,cpu,memory,duration")
	}
	if err != nil {
		return nil, readError(err)
	}
	columns, err := parseHead(head)
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	var trace Trace
	for total := 0; ; {
		record, err := file.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, readError(err)
		}
		pods, err := columns.parse(record)
		if total += pods.Count; err == nil && total > MaxPods {
			err = fmt.Errorf("count %d: %w", pods.Count, ErrTooManyPods)
		}
		if err != nil {
			line, _ := file.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		trace = append(trace, pods)
	}
	trace.Sort()
	return trace, trace.validateSpan()
}

// readError names the line as all errors do.
func readError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("line %d: %w", parse.Line, parse.Err)
	}
	return err
}

func (t Trace) validateSpan() error {
	if from, to := t.Span(); to.Sub(from) > MaxSpan {
		return fmt.Errorf("the trace covers more than %d years: from %s to %s", int(MaxSpan.Hours()/24/366), from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	}
	return nil
}

// columns are the positions of columns by name.
type columns map[string]int

func parseHead(head []string) (columns, error) {
	at := columns{}
	for i, name := range head {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		if !slices.Contains(Columns, name) {
			return nil, fmt.Errorf("column %q is not known: name columns of %s", name, strings.Join(Columns, ", "))
		}
		if _, twice := at[name]; twice {
			return nil, fmt.Errorf("column %q is there twice", name)
		}
		at[name] = i
	}
	for _, name := range Columns[:required] {
		if _, there := at[name]; !there {
			return nil, fmt.Errorf("column %q is missing", name)
		}
	}
	if _, both := at["end"]; both && at.hasColumn("duration") {
		return nil, errors.New("columns duration and end exclude each other")
	}
	return at, nil
}

func (c columns) hasColumn(name string) bool { _, there := c[name]; return there }

// textOf is empty for a column that is not there.
func (c columns) textOf(record []string, name string) string {
	if i, there := c[name]; there {
		return strings.TrimSpace(record[i])
	}
	return ""
}

// parse reads one line.
func (c columns) parse(record []string) (p Pods, err error) {
	if p.Created, err = ParseTime(c.textOf(record, "time")); err != nil {
		return Pods{}, fmt.Errorf("time %w", err)
	}
	if p.CPU, err = parseQuantity(c.textOf(record, "cpu"), resource.Milli); err != nil {
		return Pods{}, fmt.Errorf("cpu %w", err)
	}
	if p.Memory, err = parseQuantity(c.textOf(record, "memory"), 0); err != nil {
		return Pods{}, fmt.Errorf("memory %w", err)
	}
	if p.Lasts, err = c.parseLasts(record, p.Created); err != nil {
		return Pods{}, err
	}
	p.Count = 1
	if text := c.textOf(record, "count"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return Pods{}, fmt.Errorf("count %.40q: write a number from 1 to %d", text, MaxPods)
		}
		p.Count = int(n)
	}
	if err := p.Validate(); err != nil {
		return Pods{}, err
	}
	return p, nil
}

// parseLasts reads how long the pods run: 0 if they do not end.
func (c columns) parseLasts(record []string, created time.Time) (time.Duration, error) {
	if text := c.textOf(record, "duration"); text != "" {
		lasts, err := parseDuration(text)
		if err != nil || lasts <= 0 {
			return 0, fmt.Errorf("duration %.40q: write for example 90s or 1h30m, or seconds", text)
		}
		return lasts, nil
	}
	text := c.textOf(record, "end")
	if text == "" {
		return 0, nil
	}
	end, err := ParseTime(text)
	if err != nil {
		return 0, fmt.Errorf("end %w", err)
	}
	if !end.After(created) {
		return 0, fmt.Errorf("end %.40q is not after the time", text)
	}
	return end.Sub(created), nil
}

// ParseTime reads a time in one of the forms of a trace.
func ParseTime(text string) (time.Time, error) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	// Up to the year 2262, where a duration since 1970 ends.
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 && seconds < math.MaxInt64/float64(time.Second) {
		return time.UnixMicro(int64(seconds * 1e6)).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%.40q: write for example 2026-03-02T09:00:00Z, or seconds since 1970", text)
}

func parseDuration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if seconds > MaxSpan.Seconds() || math.IsNaN(seconds) {
			return 0, errors.New("too long")
		}
		return time.Duration(seconds * float64(time.Second)), nil
	}
	return time.ParseDuration(text)
}

// parseQuantity reads a Kubernetes quantity, rounded up to a multiple of 10^scale.
func parseQuantity(text string, scale resource.Scale) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() < 0 {
		return 0, fmt.Errorf("%.40q: write a quantity, for example 500m or 2Gi", text)
	}
	if q.Cmp(*resource.NewScaledQuantity(MaxRequest, scale)) > 0 {
		return 0, fmt.Errorf("%.40q is too large", text)
	}
	return q.ScaledValue(scale), nil
}
