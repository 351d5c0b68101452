// SPDX-License-Identifier: Apache-2.0

package written

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// End is how a write ended, in the words of the metrics: done; conflict, since it was decided on something old; or error.
func End(err error) string {
	switch {
	case err == nil:
		return "done"
	case apierrors.IsConflict(err):
		return "conflict"
	}
	return "error"
}
