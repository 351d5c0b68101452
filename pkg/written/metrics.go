// SPDX-License-Identifier: Apache-2.0

package written

import (
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

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

// Begin shows counters of writes, the last label of which says how they ended, before there is anything to count: Prometheus
// does not see the rise of a counter that begins with 1.
func Begin(writes *prometheus.CounterVec, labels ...string) {
	for _, end := range []string{"done", "conflict", "error"} {
		writes.WithLabelValues(append(labels[:len(labels):len(labels)], end)...)
	}
}
