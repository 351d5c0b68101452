// SPDX-License-Identifier: Apache-2.0

package written

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ListStored has a list of an informer show the stored state. Informers ask for version "0", which
// an API server may answer from a cache that is minutes old: a process that has just started would
// know less than its predecessor wrote.
func ListStored(o *metav1.ListOptions) {
	if o.ResourceVersion == "0" && o.ResourceVersionMatch == "" {
		o.ResourceVersion = ""
	}
}
