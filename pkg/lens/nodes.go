// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// Nodes is a client of the target cluster that reads Nodes from a store, where that shows all that was written through it.
//
// Machine-controller-manager's MachineDeployment controller reads the Node of every machine of a MachineDeployment from the server,
// one after the other, each time it looks at the MachineDeployment: with fifty machines and a busy server that takes seconds, in which
// a change of replicas or of the excess waits. It watches Nodes anyway. Its writes carry the version that was read, so that one that
// rests on an old version is refused, and it then reads from the server.
func Nodes(client kubernetes.Interface, store corelisters.NodeLister) kubernetes.Interface {
	return nodesFromStore{client, &nodeMemory{store: store, written: map[string]string{}, doubtful: map[string]bool{}}}
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

// nodeMemory is a store, and the versions that it has to show before it is believed.
type nodeMemory struct {
	store corelisters.NodeLister

	mu      sync.Mutex
	written map[string]string
	// doubtful are Nodes a write of which failed, because the store was old perhaps: the next read is from the server.
	doubtful map[string]bool
}

// known returns a copy of what the store shows, nil where the server has to be asked.
func (m *nodeMemory) known(name string) *corev1.Node {
	node, err := m.store.Get(name)
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.doubtful[name] {
		delete(m.doubtful, name)
		return nil
	}
	if version, wrote := m.written[name]; wrote {
		if !atLeast(node.ResourceVersion, version) {
			return nil
		}
		delete(m.written, name)
	}
	return node.DeepCopy()
}

// wrote notes what a write came to.
func (m *nodeMemory) wrote(name string, node *corev1.Node, err error) (*corev1.Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.written[name] = node.ResourceVersion
	case apierrors.IsNotFound(err):
		delete(m.written, name)
	default:
		m.doubtful[name] = true
	}
	return node, err
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
