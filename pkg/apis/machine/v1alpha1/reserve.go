// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
)

// Reserve is the mark of a Machine in reserve: since when it is in reserve, and exactly what was
// added to its node template to hold it there, so that exactly this is hidden from
// machine-controller-manager, and removed on release. It does not contain what the template of its
// MachineSet has by itself.
//
// The value of [ReserveAnnotation] is its JSON form:
//
//	{"since":"2026-11-21T09:30:00Z","taints":[{"key":"k","effect":"NoSchedule"}],"annotations":{"a":"b"}}
//
// +k8s:deepcopy-gen=false
type Reserve struct {
	// Since has a precision of seconds, in UTC.
	Since time.Time
	// Taints have no timeAdded: machine-controller-manager compares that by its address, and would
	// write forever.
	Taints      []corev1.Taint
	Annotations map[string]string
}

// maxReserveLength limits the length of a mark, in bytes.
const maxReserveLength = 16 << 10

// reserveWire is the mark as it is written.
//
// +k8s:deepcopy-gen=false
type reserveWire struct {
	Since       string            `json:"since"`
	Taints      []taintWire       `json:"taints,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// +k8s:deepcopy-gen=false
type taintWire struct {
	Key    string             `json:"key"`
	Value  string             `json:"value,omitempty"`
	Effect corev1.TaintEffect `json:"effect"`
}

// ParseReserve parses the value of [ReserveAnnotation]. It returns an error unless it understands
// the whole mark, because exactly what was added must be hidden and removed.
func ParseReserve(text string) (Reserve, error) {
	if len(text) > maxReserveLength {
		return Reserve{}, fmt.Errorf("reserve mark of %d bytes: at most %d", len(text), maxReserveLength)
	}
	var wire reserveWire
	strict, err := json.UnmarshalStrict([]byte(text), &wire)
	if err := errors.Join(append(strict, err)...); err != nil {
		return Reserve{}, fmt.Errorf("reserve mark %.80q: %w", text, err)
	}
	since, err := time.Parse(time.RFC3339, wire.Since)
	if err != nil {
		return Reserve{}, fmt.Errorf("reserve mark %.80q: %w", text, err)
	}
	r := Reserve{Since: since.UTC(), Annotations: wire.Annotations}
	if r.Since.Nanosecond() != 0 || r.Since.Year() < 0 || r.Since.Year() > 9999 {
		return Reserve{}, fmt.Errorf("reserve mark %.80q: since must be in whole seconds, of the years 0 to 9999 in UTC", text)
	}
	for _, t := range wire.Taints {
		if err := t.valid(); err != nil {
			return Reserve{}, fmt.Errorf("reserve mark %.80q: %w", text, err)
		}
		taint := corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
		if slices.ContainsFunc(r.Taints, func(other corev1.Taint) bool { return taint.MatchTaint(&other) }) {
			return Reserve{}, fmt.Errorf("reserve mark %.80q: taint %s twice", text, taint.ToString())
		}
		r.Taints = append(r.Taints, taint)
	}
	if _, empty := r.Annotations[""]; empty {
		return Reserve{}, fmt.Errorf("reserve mark %.80q: an annotation without a key", text)
	}
	return r, nil
}

func (t taintWire) valid() error {
	switch t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		return fmt.Errorf("taint effect %q: must be NoSchedule, PreferNoSchedule or NoExecute", t.Effect)
	}
	if t.Key == "" {
		return errors.New("a taint without a key")
	}
	return nil
}

// String returns the form that [ParseReserve] reads. Equal marks have the same form, whatever the
// order of their taints.
func (r Reserve) String() string {
	wire := reserveWire{Since: r.Since.UTC().Format(time.RFC3339), Annotations: r.Annotations}
	for _, t := range r.Taints {
		wire.Taints = append(wire.Taints, taintWire{t.Key, t.Value, t.Effect})
	}
	slices.SortFunc(wire.Taints, func(a, b taintWire) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Value, b.Value))
	})
	text := &bytes.Buffer{}
	encoder := stdjson.NewEncoder(text)
	encoder.SetEscapeHTML(false) // people read it in kubectl describe
	if err := encoder.Encode(wire); err != nil {
		panic(fmt.Sprintf("encode reserve mark: %v", err)) // strings always encode
	}
	return string(bytes.TrimSpace(text.Bytes()))
}
