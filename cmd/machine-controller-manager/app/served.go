// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/access"
	autoscalingv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	bufferv1beta1 "github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	evenkeelinformers "github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
)

// An API server may serve Reserves or CapacityBuffers to others, and not grant this process the
// right to read them: a seed of Gardener serves Reserves to all Shoots as soon as one of them has
// the extension.

// reservesRule is the right to read Reserves.
func reservesRule(namespace string) access.Rule {
	return access.Rule{
		Cluster: "control", Resource: autoscalingv1alpha1.SchemeGroupVersion.WithResource("reserves").GroupResource(), Namespace: namespace,
		Without: "Reserves have no effect. They also need the right to update reserves/status",
	}
}

// buffersRule is the right to read CapacityBuffers.
var buffersRule = access.Rule{
	Cluster: "target", Resource: bufferv1beta1.SchemeGroupVersion.WithResource("capacitybuffers").GroupResource(),
	Without: "CapacityBuffers have no effect. They also need the right to update capacitybuffers/status",
}

// readReserves has a factory read the Reserves of a namespace once the process has the right.
func readReserves(factory evenkeelinformers.SharedInformerFactory, rights *access.Rights, namespace string) (cache.SharedIndexInformer, error) {
	informer := access.Informer(factory.InformerFor, rights, reservesRule(namespace), &autoscalingv1alpha1.Reserve{},
		func(c evenkeel.Interface) access.Reader[*autoscalingv1alpha1.ReserveList] {
			return c.AutoscalingV1alpha1().Reserves(namespace)
		})
	return informer, informer.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// readBuffers has a factory read CapacityBuffers once the process has the right.
func readBuffers(factory evenkeelinformers.SharedInformerFactory, rights *access.Rights) cache.SharedIndexInformer {
	return access.Informer(factory.InformerFor, rights, buffersRule, &bufferv1beta1.CapacityBuffer{},
		func(c evenkeel.Interface) access.Reader[*bufferv1beta1.CapacityBufferList] {
			return c.CapacityBufferV1beta1().CapacityBuffers(metav1.NamespaceAll)
		})
}

// awaitReserveRights returns when Reserves may be read, or cannot be for another reason, or ctx ends.
func awaitReserveRights(ctx context.Context, rights *access.Rights, ours evenkeel.Interface, namespace string) {
	_, _ = access.Await(ctx, rights, reservesRule(namespace), func() (*autoscalingv1alpha1.ReserveList, error) {
		return ours.AutoscalingV1alpha1().Reserves(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	})
}
