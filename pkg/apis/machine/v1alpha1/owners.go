// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	stdjson "encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
)

// ExcessOwner is a field manager of spec.excessReplicas, as recorded in metadata.managedFields
// while the field was set.
//
// +k8s:deepcopy-gen=false
type ExcessOwner struct {
	Manager   string                            `json:"manager"`
	Operation metav1.ManagedFieldsOperationType `json:"operation"`
	// Time of its last write then.
	Time metav1.Time `json:"time"`
}

// maxOwnersLength limits the length of owners, in bytes.
const maxOwnersLength = 4 << 10

// ParseExcessOwners reads the value of [ExcessOwnersAnnotation].
func ParseExcessOwners(text string) ([]ExcessOwner, error) {
	if len(text) > maxOwnersLength {
		return nil, fmt.Errorf("excess owners of %d bytes: at most %d", len(text), maxOwnersLength)
	}
	var owners []ExcessOwner
	strict, err := json.UnmarshalStrict([]byte(text), &owners)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("excess owners %.80q: %w", text, err)
	}
	return owners, nil
}

// ExcessOwnersText returns the form that [ParseExcessOwners] reads; empty if there are none.
func ExcessOwnersText(owners []ExcessOwner) string {
	if len(owners) == 0 {
		return ""
	}
	text, err := stdjson.Marshal(owners)
	if err != nil {
		panic(fmt.Sprintf("encode excess owners: %v", err)) // strings and times always encode
	}
	return string(text)
}
