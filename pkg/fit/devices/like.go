// SPDX-License-Identifier: Apache-2.0

package devices

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// like is the annotation of a node that stands for a machine whose devices are not known yet. Its
// value is the name of a node that has the same devices.
const like = "devices/like"

// Like has a node offer the devices that another one offers now, all of them free. It is for the node
// of a machine that boots, or whose drivers have not started, and that exists only in memory.
func Like(node *corev1.Node, sample string) {
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, like, sample)
}

// deviceNode returns the node whose devices count for a node, and whether all of them are free.
func deviceNode(node *corev1.Node) (_ *corev1.Node, free bool) {
	sample, ok := node.Annotations[like]
	if !ok {
		return node, false
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: sample, Labels: node.Labels}}, true
}
