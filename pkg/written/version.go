// SPDX-License-Identifier: Apache-2.0

package written

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Reached reports whether a store or an object at resourceVersion a shows what was written at b.
//
// Versions that cannot be compared count as reached. Every version that kube-apiserver stores can
// be compared; others come from aggregated API servers. Acting too early costs only a conflict
// there, because each write carries the version that it was decided on. Waiting for a version that
// cannot be recognized would never end. A store without any version has shown nothing yet.
func Reached(a, b string) bool {
	switch {
	case b == "" || a == b:
		return true
	case a == "":
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order >= 0
}
