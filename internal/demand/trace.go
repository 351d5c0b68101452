// SPDX-License-Identifier: Apache-2.0

package demand

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// MaxPods is how many pods a trace may contain.
	MaxPods = 1_000_000
	// MaxSpan is how much time a trace may cover.
	MaxSpan = 10 * 366 * 24 * time.Hour
	// MaxRequest limits each request of a pod, so that sums cannot overflow.
	MaxRequest = math.MaxInt64 / MaxPods
)

// Pods are equal pods that were created at the same time.
type Pods struct {
	Created time.Time
	// CPU is in thousandths, Memory in bytes.
	CPU, Memory int64
	// Lasts is how long each of them runs once it has started; 0 means that it does not end.
	Lasts time.Duration
	Count int
}

// Trace is the demand of a time, sorted by creation.
type Trace []Pods

// ErrTooManyPods is returned for a trace of more than MaxPods.
var ErrTooManyPods = fmt.Errorf("a trace may contain at most %d pods", MaxPods)

// Count returns the number of pods.
func (t Trace) Count() int {
	n := 0
	for _, p := range t {
		n += p.Count
	}
	return n
}

// Sort sorts a trace by creation. Pods that were created at the same time keep their order.
func (t Trace) Sort() {
	slices.SortStableFunc(t, func(a, b Pods) int { return cmp.Or(a.Created.Compare(b.Created)) })
}

// Span returns the time from the first creation to the last creation or end.
func (t Trace) Span() (from, to time.Time) {
	for i, p := range t {
		if i == 0 || p.Created.Before(from) {
			from = p.Created
		}
		if end := p.Created.Add(p.Lasts); end.After(to) {
			to = end
		}
	}
	return from, to
}

// Validate reports what a simulation cannot work with.
func (p Pods) Validate() error {
	switch {
	case p.Count < 1:
		return fmt.Errorf("count %d: write a number from 1", p.Count)
	case p.Count > MaxPods:
		return fmt.Errorf("count %d: %w", p.Count, ErrTooManyPods)
	case p.CPU < 0 || p.CPU > MaxRequest:
		return fmt.Errorf("cpu %dm: write a quantity from 0 to %dm", p.CPU, int64(MaxRequest))
	case p.Memory < 0 || p.Memory > MaxRequest:
		return fmt.Errorf("memory %d: write a quantity from 0 to %d", p.Memory, int64(MaxRequest))
	case p.Lasts < 0:
		return fmt.Errorf("the pod ends %v before it is created", -p.Lasts)
	case p.Lasts > MaxSpan:
		return fmt.Errorf("the pod lasts %v: write at most %v", p.Lasts, time.Duration(MaxSpan))
	}
	return nil
}
