// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const verifyPrefix = "verify:"

// verify asks clusters directly if the ledger is ahead of their caches. A cache may be late, also
// after a change of leader, or the cluster was restored from a backup.
func (c *Controller) verify(v plan.View, p plan.Plan) {
	key := keyOf(v.Object)
	for i := range p.Clusters {
		s := &p.Clusters[i]
		m, _ := c.fleet.memberFor(s.Name)
		unseen := s.UnseenVersion()
		if unseen == "" || m == nil {
			continue
		}
		m.outbox.change(key, func(n *outboxEntry) { n.verifying = unseen })
		m.loop.Add(verifyPrefix + key)
	}
}

// verifyOne reads an autoscaler from the cluster's etcd. If it does not have the version that the
// ledger expects, it never will have it again.
func (m *member) verifyOne(ctx context.Context, key string) {
	version := m.outbox.readEntry(key).verifying
	if version == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.RequestTimeout)
	defer cancel()
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	is, err := m.dynamic.Resource(hpaResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	m.outbox.updateEntry(key, func(n *outboxEntry) {
		n.verifying = ""
		switch {
		case !written.Answered(err):
		case err != nil || !written.Reached(is.GetResourceVersion(), version):
			n.verified = version
		default:
			n.answered = is
		}
	})
	m.changed(key)
}
