// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"regexp"
	"sync"
)

// AppliedExcess is what machine-controller-manager is asked to run beyond the machines for workload
// right now.
//
// +k8s:deepcopy-gen=false
type AppliedExcess struct {
	Machines int32
	// Max is the upper bound that Machines was computed for, nil where there was none.
	Max *int32
	// Counted is how many of Machines spec.replicas includes, and Replicas is the value of
	// spec.replicas when that was written. Both are 0 if spec.replicas includes none.
	Counted, Replicas int32
}

var appliedExcessRegexp = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^` + countPattern + `(,max=` + countPattern + `)?(,counted=` + countPattern + `,replicas=` + countPattern + `)?$`)
})

// ParseAppliedExcess parses the value of [AppliedExcessAnnotation]: "2", or "2,max=5" if there are
// bounds. If spec.replicas includes some of these machines, it also contains how many, and the
// number of replicas: "2,max=5,counted=1,replicas=4".
func ParseAppliedExcess(text string) (AppliedExcess, error) {
	parts := appliedExcessRegexp().FindStringSubmatch(text)
	if parts == nil {
		return AppliedExcess{}, fmt.Errorf("applied excess %.80q: write a count, or a count and the maximum it is for: \"2\", \"2,max=5\"", text)
	}
	var a AppliedExcess
	var limit int32
	for _, part := range []struct {
		what, digits string
		into         *int32
	}{{"machines", parts[1], &a.Machines}, {"max", parts[3], &limit}, {"counted", parts[5], &a.Counted}, {"replicas", parts[6], &a.Replicas}} {
		if part.digits == "" {
			continue
		}
		n, err := parseCount(part.what, part.digits)
		if err != nil {
			return AppliedExcess{}, fmt.Errorf("applied excess %q: %w", text, err)
		}
		*part.into = n
	}
	if parts[3] != "" {
		a.Max = &limit
	}
	if a.Counted > a.Machines || a.Counted > a.Replicas {
		return AppliedExcess{}, fmt.Errorf("applied excess %q: counted must not be above machines or replicas", text)
	}
	return a, nil
}

// String is the form that [ParseAppliedExcess] reads.
func (a AppliedExcess) String() string {
	text := fmt.Sprint(a.Machines)
	if a.Max != nil {
		text += fmt.Sprintf(",max=%d", *a.Max)
	}
	if a.Counted > 0 {
		text += fmt.Sprintf(",counted=%d,replicas=%d", a.Counted, a.Replicas)
	}
	return text
}

// ParseAppliedReplicas reads the value of [AppliedReplicasAnnotation], a count.
func ParseAppliedReplicas(text string) (int32, error) {
	if !isCount(text) {
		return 0, fmt.Errorf("applied replicas %.80q: write a count", text)
	}
	n, err := parseCount("replicas", text)
	if err != nil {
		return 0, fmt.Errorf("applied replicas %q: %w", text, err)
	}
	return n, nil
}
