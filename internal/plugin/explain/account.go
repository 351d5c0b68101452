// SPDX-License-Identifier: Apache-2.0

// Package explain explains why an object is as it is: the numbers and the law behind its state,
// and, from the controllers' own plans, what happens next and when.
package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// Account is an explanation.
type Account struct {
	// Title names the object and what it is doing.
	Title string
	Facts []Fact
	// Why contains sentences about the state, Next about what happens next; both in reading order.
	Why, Next []string
	// See lists pages with more information.
	See []string
}

// Fact is one thing about the object.
type Fact struct{ Name, Value string }

// ErrNotFound means that there is no such object, ErrAmbiguous that several namespaces have one.
var (
	ErrNotFound  = errors.New("not found")
	ErrAmbiguous = errors.New("choose one")
)

// findObject finds an object by its name.
func findObject[T metav1.Object](objects []T, kind, name string, o overview.Objects) (T, error) {
	var found []T
	var spaces []string
	for _, object := range objects {
		if object.GetName() == name {
			found, spaces = append(found, object), append(spaces, object.GetNamespace())
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		slices.Sort(spaces)
		return found[0], fmt.Errorf("%s %q is in namespaces %s: %w", kind, name, strings.Join(spaces, ", "), ErrAmbiguous)
	}
	err := fmt.Errorf("%s %q: %w", kind, name, ErrNotFound)
	if len(o.Missing) > 0 {
		err = fmt.Errorf("%w (could not read: %s)", err, strings.Join(o.Missing, "; "))
	}
	var none T
	return none, err
}

func (a *Account) addFact(name, format string, values ...any) {
	a.Facts = append(a.Facts, Fact{name, fmt.Sprintf(format, values...)})
}

func (a *Account) addReason(format string, values ...any) {
	a.Why = append(a.Why, fmt.Sprintf(format, values...))
}

// addMissing names what could not be read, and is missing from the explanation.
func (a *Account) addMissing(o overview.Objects) {
	if len(o.Missing) > 0 {
		a.addReason("Not everything could be read (%s), so the controller may know more than this.", strings.Join(o.Missing, "; "))
	}
}

func (a *Account) addNext(format string, values ...any) {
	a.Next = append(a.Next, fmt.Sprintf(format, values...))
}

// formatPast formats a time in the past: when, and how long ago.
func formatPast(at, now time.Time) string {
	return fmt.Sprintf("%s (%s ago)", formatClock(at), duration.HumanDuration(max(0, now.Sub(at))))
}

// formatFuture formats a time in the future.
func formatFuture(at, now time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return fmt.Sprintf("in %s (%s)", duration.HumanDuration(at.Sub(now)), formatClock(at))
}

func formatClock(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }

// ordinal formats a rank: 1st, 2nd, 11th.
func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}
