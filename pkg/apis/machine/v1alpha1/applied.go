// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"regexp"
)

// AppliedExcess is what machine-controller-manager is asked to run beyond replicas right now.
//
// +k8s:deepcopy-gen=false
type AppliedExcess struct {
	Machines int32
	// Max is the upper bound that Machines was computed for, nil where there was none.
	Max *int32
}

var (
	appliedExcessRegexp   = regexp.MustCompile(`^` + countPattern + `(,max=` + countPattern + `)?$`)
	appliedReplicasRegexp = regexp.MustCompile(`^` + countPattern + `$`)
)

// ParseAppliedExcess reads the value of [AppliedExcessAnnotation]: "2", or "2,max=5" where bounds exist.
func ParseAppliedExcess(text string) (AppliedExcess, error) {
	parts := appliedExcessRegexp.FindStringSubmatch(text)
	if parts == nil {
		return AppliedExcess{}, fmt.Errorf("applied excess %.80q: write a count, or a count and the maximum it is for: \"2\", \"2,max=5\"", text)
	}
	var a AppliedExcess
	var err error
	if a.Machines, err = parseCount("machines", parts[1]); err != nil {
		return AppliedExcess{}, fmt.Errorf("applied excess %q: %w", text, err)
	}
	if parts[3] != "" {
		limit, err := parseCount("max", parts[3])
		if err != nil {
			return AppliedExcess{}, fmt.Errorf("applied excess %q: %w", text, err)
		}
		a.Max = &limit
	}
	return a, nil
}

// String is the form that [ParseAppliedExcess] reads.
func (a AppliedExcess) String() string {
	if a.Max == nil {
		return fmt.Sprint(a.Machines)
	}
	return fmt.Sprintf("%d,max=%d", a.Machines, *a.Max)
}

// ParseAppliedReplicas reads the value of [AppliedReplicasAnnotation], a count.
func ParseAppliedReplicas(text string) (int32, error) {
	if !appliedReplicasRegexp.MatchString(text) {
		return 0, fmt.Errorf("applied replicas %.80q: write a count", text)
	}
	n, err := parseCount("replicas", text)
	if err != nil {
		return 0, fmt.Errorf("applied replicas %q: %w", text, err)
	}
	return n, nil
}
