// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// onlyFakeNodes is a client that shows fake nodes and no others, as a server would if annotations
// could be selected by: a node that stops being fake is reported as deleted.
type onlyFakeNodes struct{ kubernetes.Interface }

func (c onlyFakeNodes) CoreV1() typedcorev1.CoreV1Interface { return coreV1{c.Interface.CoreV1()} }

type coreV1 struct{ typedcorev1.CoreV1Interface }

func (c coreV1) Nodes() typedcorev1.NodeInterface { return fakeNodes{c.CoreV1Interface.Nodes()} }

type fakeNodes struct{ typedcorev1.NodeInterface }

func (n fakeNodes) List(ctx context.Context, opts metav1.ListOptions) (*corev1.NodeList, error) {
	list, err := n.NodeInterface.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	list.Items = slices.DeleteFunc(list.Items, func(node corev1.Node) bool { return !isFake(&node) })
	return list, nil
}

func (n fakeNodes) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	watcher, err := n.NodeInterface.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return watch.Filter(watcher, asSelected), nil
}

// asSelected turns an event of a node into what a watch with a selector would say. Of a node that
// was never fake it may say "deleted" too, which informers ignore.
func asSelected(event watch.Event) (watch.Event, bool) {
	node, ok := event.Object.(*corev1.Node)
	if !ok || event.Type == watch.Bookmark || isFake(node) {
		return event, true
	}
	if event.Type == watch.Modified {
		event.Type = watch.Deleted
		return event, true
	}
	return event, false
}

func isFake(node *corev1.Node) bool { return node.Annotations["kwok.x-k8s.io/node"] == "fake" }
