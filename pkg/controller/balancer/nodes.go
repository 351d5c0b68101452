// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
)

// byNode indexes pods by their Node.
const byNode = "node"

func indexByNode(item any) ([]string, error) {
	if pod, ok := item.(*cachedPod); ok && pod.node != "" {
		return []string{pod.node}, nil
	}
	return nil, nil
}

// cachedNode is what the cache keeps of a Node.
type cachedNode struct {
	metav1.ObjectMeta
	readiness plan.NodeReadiness
}

// stripNode is the transform of the informer of Nodes.
func stripNode(item any) (any, error) {
	node, ok := item.(*corev1.Node)
	if !ok {
		return item, nil
	}
	kept := &cachedNode{ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: node.ResourceVersion}}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			kept.readiness = plan.NodeReadiness{Known: true, Ready: c.Status == corev1.ConditionTrue, Since: c.LastTransitionTime.Time}
		}
	}
	return kept, nil
}

// readinessOf returns what is known about a Node. One that does not exist has just stopped being ready,
// as far as is known: its pods stay for a minute until they are deleted, too.
func (c *Controller) readinessOf(name string) plan.NodeReadiness {
	if item, found, err := c.nodes.GetByKey(name); found && err == nil {
		if node, ok := item.(*cachedNode); ok {
			return node.readiness
		}
	}
	return plan.NodeReadiness{Known: name != "" && cache.IsDone(c.nodesKnown.synced), Since: c.clock.Now()}
}

// nodeChanged queues the Balancers with pods on a Node whose readiness has changed.
func (c *Controller) nodeChanged(was, is any) {
	before, _ := was.(*cachedNode)
	after, _ := is.(*cachedNode)
	if before != nil && after != nil && before.readiness == after.readiness || before == nil && after == nil {
		return
	}
	if after == nil {
		after = before
	}
	pods, _ := c.pods.ByIndex(byNode, after.Name)
	for _, item := range pods {
		if pod, ok := item.(*cachedPod); ok {
			for _, key := range c.interests.interested(pod.Namespace, labels.Set(pod.Labels)) {
				c.loop.AddAfter(key, gather)
			}
		}
	}
}

// nodesKnown is done once all Nodes are in the cache, or some time after this process was first
// forbidden to read them. To decide without them would trust pods that nobody can reach.
type nodesKnown struct {
	synced       cache.DoneChecker
	once         sync.Once
	denied, done chan struct{}
}

func newNodesKnown(synced cache.DoneChecker) *nodesKnown {
	return &nodesKnown{synced: synced, denied: make(chan struct{}), done: make(chan struct{})}
}

// Name returns what is waited for.
func (n *nodesKnown) Name() string { return "Nodes" }

// Done returns a channel that is closed when it is done.
func (n *nodesKnown) Done() <-chan struct{} { return n.done }

// run waits until it is done. An API server that has just started may refuse what it allows later.
func (n *nodesKnown) run(ctx context.Context, c clock.WithTicker) {
	select {
	case <-n.synced.Done():
		close(n.done)
		return
	case <-n.denied:
	case <-ctx.Done():
		return
	}
	select {
	case <-n.synced.Done():
	case <-c.After(fillTime):
		klog.FromContext(ctx).Info("Nodes cannot be watched: pods on Nodes that are not ready count as running until they are evicted. Allow this process to list and watch nodes")
	case <-ctx.Done():
		return
	}
	close(n.done)
}

// failed is called with each error of the watch of Nodes.
func (n *nodesKnown) failed(ctx context.Context, r *cache.Reflector, err error) {
	cache.DefaultWatchErrorHandler(ctx, r, err)
	if apierrors.IsForbidden(err) {
		n.once.Do(func() { close(n.denied) })
	}
}
