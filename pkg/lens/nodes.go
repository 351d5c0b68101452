// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// NodesFromStore returns a client of the target cluster that reads Nodes from a store, if the store
// shows everything that was written through the client.
//
// Machine-controller-manager's MachineDeployment controller reads the Node of every machine of a
// MachineDeployment from the server, one after the other, at each sync. With fifty machines and a
// busy server, that takes seconds, which delays a change of replicas or of the excess. It watches
// Nodes anyway. Its writes carry the version that was read, so a write based on an old version is
// refused, and the next read is from the server. A write of taints is repeated if only the status
// has changed since that version: machine-controller-manager logs such an error, and does not try
// again. Its other writes may depend on the status.
//
// The returned factory has only an informer of Nodes. Its lister returns copies, because
// machine-controller-manager changes objects that it gets, and other readers use the store, too.
func NodesFromStore(client kubernetes.Interface, informer cache.SharedIndexInformer) (kubernetes.Interface, kubeinformers.SharedInformerFactory, error) {
	memory := &nodeStore{store: corelisters.NewNodeLister(informer.GetIndexer()), pending: map[string]pendingWrite{}}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: memory.nodeDeleted})
	if err != nil {
		return nil, nil, fmt.Errorf("follow nodes: %w", err)
	}
	return nodesFromStore{client, memory}, nodeFactory{informer: informer}, nil
}

type nodesFromStore struct {
	kubernetes.Interface
	nodes *nodeStore
}

func (c nodesFromStore) CoreV1() corev1client.CoreV1Interface {
	return coreFromStore{c.Interface.CoreV1(), c.nodes}
}

type coreFromStore struct {
	corev1client.CoreV1Interface
	nodes *nodeStore
}

func (c coreFromStore) Nodes() corev1client.NodeInterface {
	return nodeVerbs{c.CoreV1Interface.Nodes(), c.nodes}
}

// nodeStore is a store of Nodes, with the writes that it must show before reads use it.
type nodeStore struct {
	store corelisters.NodeLister

	mu sync.Mutex
	// pending is about Nodes that the store shows, so that each entry ends with its Node at the
	// latest.
	pending map[string]pendingWrite
}

// pendingWrite is what must happen before reads use the store.
type pendingWrite struct {
	version string // that the store has to show
	doubted bool   // a write failed, because the store was old perhaps: the next read is from the server
}

// read returns a copy of the Node in the store, nil if it must be read from the server.
func (m *nodeStore) read(name string) *corev1.Node {
	node, err := m.store.Get(name)
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pending[name]
	behind := p.version != "" && !atLeast(node.ResourceVersion, p.version)
	if behind {
		m.pending[name] = pendingWrite{version: p.version}
	} else {
		delete(m.pending, name)
	}
	if behind || p.doubted {
		return nil
	}
	return node.DeepCopy()
}

// recordWrite records the result of a write.
func (m *nodeStore) recordWrite(name string, node *corev1.Node, err error) (*corev1.Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, missing := m.store.Get(name)
	switch {
	case missing != nil, apierrors.IsNotFound(err): // the server is asked anyway, or there is nothing to wait for
		delete(m.pending, name)
	case err == nil:
		m.pending[name] = pendingWrite{version: node.ResourceVersion}
	default:
		m.pending[name] = pendingWrite{version: m.pending[name].version, doubted: true}
	}
	return node, err
}

// nodeDeleted forgets a Node that the store no longer contains.
func (m *nodeStore) nodeDeleted(object any) {
	name, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(object) // a Node has a name
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pending, name)
}

// nodeVerbs are those that the library uses. The others go to the server.
type nodeVerbs struct {
	corev1client.NodeInterface
	nodes *nodeStore
}

func (n nodeVerbs) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Node, error) {
	if node := n.nodes.read(name); node != nil {
		return node, nil
	}
	return n.NodeInterface.Get(ctx, name, o)
}

func (n nodeVerbs) Update(ctx context.Context, node *corev1.Node, o metav1.UpdateOptions) (*corev1.Node, error) {
	base, _ := n.nodes.store.Get(node.Name) // before the watch shows what the write meets
	after, err := n.NodeInterface.Update(ctx, node, o)
	if apierrors.IsConflict(err) {
		if fresh := n.rebased(ctx, base, node); fresh != nil {
			after, err = n.NodeInterface.Update(ctx, fresh, o)
		}
	}
	return n.nodes.recordWrite(node.Name, after, err)
}

// rebased returns a Node with the version that the server has. It is nil unless the Node has other
// taints than the one that the store showed and no other difference, and only its status has changed
// since.
func (n nodeVerbs) rebased(ctx context.Context, base, node *corev1.Node) *corev1.Node {
	if base == nil || base.ResourceVersion != node.ResourceVersion || !equality.Semantic.DeepEqual(withTaintsOf(base, node), withTaintsOf(base, base)) {
		return nil
	}
	live, err := n.NodeInterface.Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil || !equality.Semantic.DeepEqual(withTaintsOf(base, base), withTaintsOf(live, live)) {
		return nil
	}
	fresh := node.DeepCopy()
	fresh.ResourceVersion = live.ResourceVersion
	return fresh
}

// withTaintsOf returns what a write of the main resource changes in a Node, and what identifies it,
// with the taints of another one.
func withTaintsOf(other, node *corev1.Node) *corev1.Node {
	left := &corev1.Node{ObjectMeta: node.ObjectMeta, Spec: node.Spec}
	left.ResourceVersion, left.ManagedFields, left.Spec.Taints = "", nil, other.Spec.Taints
	return left
}

func (n nodeVerbs) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*corev1.Node, error) {
	after, err := n.NodeInterface.Patch(ctx, name, kind, data, o, sub...)
	return n.nodes.recordWrite(name, after, err)
}
