// SPDX-License-Identifier: Apache-2.0

package lens

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// nodeFactory has only the informer of Nodes. The informer's owner starts it.
type nodeFactory struct {
	kubeinformers.SharedInformerFactory
	informer cache.SharedIndexInformer
}

func (f nodeFactory) Core() core.Interface { return nodeGroup{informer: f.informer} }

type nodeGroup struct {
	core.Interface
	informer cache.SharedIndexInformer
}

func (g nodeGroup) V1() coreinformers.Interface { return nodeVersion{informer: g.informer} }

type nodeVersion struct {
	coreinformers.Interface
	informer cache.SharedIndexInformer
}

func (v nodeVersion) Nodes() coreinformers.NodeInformer { return nodeInformer{v.informer} }

type nodeInformer struct{ informer cache.SharedIndexInformer }

func (i nodeInformer) Informer() cache.SharedIndexInformer { return i.informer }

func (i nodeInformer) Lister() corelisters.NodeLister {
	return nodeCopies{corelisters.NewNodeLister(i.informer.GetIndexer())}
}

// nodeCopies lists copies of Nodes.
type nodeCopies struct{ corelisters.NodeLister }

func (n nodeCopies) Get(name string) (*corev1.Node, error) {
	node, err := n.NodeLister.Get(name)
	return node.DeepCopy(), err
}

func (n nodeCopies) List(selector labels.Selector) ([]*corev1.Node, error) {
	all, err := n.NodeLister.List(selector)
	for i, node := range all {
		all[i] = node.DeepCopy()
	}
	return all, err
}
