// SPDX-License-Identifier: Apache-2.0

package written

import (
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ResultLabel returns the result of a write for metrics: done; conflict, if it was decided on an
// old version; or error.
func ResultLabel(err error) string {
	switch {
	case err == nil:
		return "done"
	case apierrors.IsConflict(err):
		return "conflict"
	}
	return "error"
}

// InitCounters creates the series of a counter of writes, whose last label is the result, before
// the first write: Prometheus does not see the increase of a counter that starts at 1.
func InitCounters(writes *prometheus.CounterVec, labels ...string) {
	for _, end := range []string{"done", "conflict", "error"} {
		writes.WithLabelValues(append(labels[:len(labels):len(labels)], end)...)
	}
}
