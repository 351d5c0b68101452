// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Nodes is a client of the target cluster that reads Nodes from a store, where that shows all that was written through it.
//
// Machine-controller-manager's MachineDeployment controller reads the Node of every machine of a MachineDeployment from the server,
// one after the other, each time it looks at the MachineDeployment: with fifty machines and a busy server that takes seconds, in which
// a change of replicas or of the excess waits. It watches Nodes anyway. Its writes carry the version that was read, so that one that
// rests on an old version is refused, and it then reads from the server.
//
// The factory returned has only an informer of Nodes, whose lister returns copies: machine-controller-manager changes what it is given,
// and others read the store too.
func Nodes(client kubernetes.Interface, informer cache.SharedIndexInformer) (kubernetes.Interface, kubeinformers.SharedInformerFactory, error) {
	memory := &nodeMemory{store: corelisters.NewNodeLister(informer.GetIndexer()), pending: map[string]pending{}}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: memory.gone})
	if err != nil {
		return nil, nil, fmt.Errorf("follow nodes: %w", err)
	}
	return nodesFromStore{client, memory}, nodeFactory{informer: informer}, nil
}

type nodesFromStore struct {
	kubernetes.Interface
	memory *nodeMemory
}

func (c nodesFromStore) CoreV1() corev1client.CoreV1Interface {
	return coreFromStore{c.Interface.CoreV1(), c.memory}
}

type coreFromStore struct {
	corev1client.CoreV1Interface
	memory *nodeMemory
}

func (c coreFromStore) Nodes() corev1client.NodeInterface {
	return nodeVerbs{c.CoreV1Interface.Nodes(), c.memory}
}

// nodeMemory is a store, and what it has to show before it is believed.
type nodeMemory struct {
	store corelisters.NodeLister

	mu sync.Mutex
	// pending is about Nodes that the store shows, so that each entry ends with its Node at the latest.
	pending map[string]pending
}

// pending is what has to happen before the store is believed.
type pending struct {
	version string // that the store has to show
	doubted bool   // a write failed, because the store was old perhaps: the next read is from the server
}

// known returns a copy of what the store shows, nil where the server has to be asked.
func (m *nodeMemory) known(name string) *corev1.Node {
	node, err := m.store.Get(name)
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pending[name]
	behind := p.version != "" && !atLeast(node.ResourceVersion, p.version)
	if behind {
		m.pending[name] = pending{version: p.version}
	} else {
		delete(m.pending, name)
	}
	if behind || p.doubted {
		return nil
	}
	return node.DeepCopy()
}

// wrote notes what a write came to.
func (m *nodeMemory) wrote(name string, node *corev1.Node, err error) (*corev1.Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, missing := m.store.Get(name)
	switch {
	case missing != nil, apierrors.IsNotFound(err): // the server is asked anyway, or there is nothing to wait for
		delete(m.pending, name)
	case err == nil:
		m.pending[name] = pending{version: node.ResourceVersion}
	default:
		m.pending[name] = pending{version: m.pending[name].version, doubted: true}
	}
	return node, err
}

// gone forgets a Node after the store has.
func (m *nodeMemory) gone(object any) {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pending, name)
}

// nodeVerbs are those that the library uses; the others go to the server as they are.
type nodeVerbs struct {
	corev1client.NodeInterface
	memory *nodeMemory
}

func (n nodeVerbs) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Node, error) {
	if node := n.memory.known(name); node != nil {
		return node, nil
	}
	return n.NodeInterface.Get(ctx, name, o)
}

func (n nodeVerbs) Update(ctx context.Context, node *corev1.Node, o metav1.UpdateOptions) (*corev1.Node, error) {
	after, err := n.NodeInterface.Update(ctx, node, o)
	return n.memory.wrote(node.Name, after, err)
}

func (n nodeVerbs) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*corev1.Node, error) {
	after, err := n.NodeInterface.Patch(ctx, name, kind, data, o, sub...)
	return n.memory.wrote(name, after, err)
}
