// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	stdjson "encoding/json"
	"fmt"

	"sigs.k8s.io/json"
)

// maxOwnersLength limits the length of owners, in bytes.
const maxOwnersLength = 4 << 10

// ParseExcessOwners reads the value of [ExcessOwnersAnnotation]: a JSON list of field managers.
func ParseExcessOwners(text string) ([]string, error) {
	if len(text) > maxOwnersLength {
		return nil, fmt.Errorf("excess owners of %d bytes: at most %d", len(text), maxOwnersLength)
	}
	var owners []string
	if err := json.UnmarshalCaseSensitivePreserveInts([]byte(text), &owners); err != nil {
		return nil, fmt.Errorf("excess owners %.80q: %w", text, err)
	}
	return owners, nil
}

// ExcessOwnersText returns the form that [ParseExcessOwners] reads; empty if there are none.
func ExcessOwnersText(owners []string) string {
	if len(owners) == 0 {
		return ""
	}
	text, err := stdjson.Marshal(owners)
	if err != nil {
		panic(fmt.Sprintf("encode excess owners: %v", err)) // strings always encode
	}
	return string(text)
}
