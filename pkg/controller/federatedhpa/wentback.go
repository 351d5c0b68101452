// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// emptyList selects an autoscaler that does not exist, so that the list consists of its version.
var emptyList = metav1.ListOptions{FieldSelector: "metadata.name=federatedhpa-probe"}

// wentBack reports whether the cluster's versions are lower than at the last probe: its etcd was restored from a backup. Watches go
// on from versions that the cluster has yet to reach, so they show nothing of that. Each probe is a consistent read that begins after
// the one before it has ended, so an API server whose cache is behind does not look like a restore. A cluster that passes its old
// version between two probes goes unnoticed.
func (m *member) wentBack(ctx context.Context) bool {
	list, err := m.dynamic.Resource(hpaResource).Namespace(cmp.Or(m.o.Namespace, metav1.NamespaceDefault)).List(ctx, emptyList)
	if err != nil {
		klog.FromContext(ctx).V(4).Info("The version of a cluster is unknown", "err", err)
		return false
	}
	before := m.probed
	m.probed = list.GetResourceVersion()
	return isNewer(before, m.probed)
}
