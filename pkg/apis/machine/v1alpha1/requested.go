// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
)

// RequestedExcess is what a Reserve requests of a MachineDeployment.
//
// +k8s:deepcopy-gen=false
type RequestedExcess struct {
	// Reserve is the name of the Reserve, in the namespace of the MachineDeployment.
	Reserve  string
	Machines int32
}

// ParseRequestedExcess reads the value of [RequestedExcessAnnotation]: "office-hours=3".
func ParseRequestedExcess(text string) (RequestedExcess, error) {
	if len(text) > maxRequestedLength {
		return RequestedExcess{}, fmt.Errorf("requested excess %.80q: at most %d characters", text, maxRequestedLength)
	}
	name, count, _ := strings.Cut(text, "=")
	r := RequestedExcess{Reserve: name}
	err := errors.New("write a Reserve and a count, for example \"office-hours=3\"")
	if isCount(count) && len(validation.NameIsDNSSubdomain(name, false)) == 0 {
		r.Machines, err = parseCount("machines", count)
	}
	if err != nil {
		return RequestedExcess{}, fmt.Errorf("requested excess %.80q: %w", text, err)
	}
	return r, nil
}

// maxRequestedLength is that of the longest name and the longest count, in bytes.
const maxRequestedLength = 253 + len("=2147483647")

// String is the form that [ParseRequestedExcess] reads.
func (r RequestedExcess) String() string { return fmt.Sprintf("%s=%d", r.Reserve, r.Machines) }
