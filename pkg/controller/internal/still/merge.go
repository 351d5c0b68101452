// SPDX-License-Identifier: Apache-2.0

package still

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// Merge applies a merge patch to an object, as the API server does, and decodes the result.
func Merge(object any, patch []byte, into any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode object: %w", err)
	}
	if raw, err = jsonpatch.MergePatch(raw, patch); err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("decode object: %w", err)
	}
	return nil
}
