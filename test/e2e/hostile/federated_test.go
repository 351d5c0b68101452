// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

type federated = autoscaling.FederatedHorizontalPodAutoscaler

func federatedOf(name string) *federated {
	return &federated{ObjectMeta: named(name), Spec: autoscaling.FederatedHorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscaling.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, MaxReplicas: math.MaxInt32,
	}}
}

// stuffings say as much as an object may, each in another place.
var stuffings = []func(o *federated){
	func(o *federated) { o.Annotations = map[string]string{"a": text} },
	func(o *federated) { o.Spec.Metrics = []runtime.RawExtension{metric(text)} },
	func(o *federated) { o.Spec.Metrics = []runtime.RawExtension{metric(text[:16<<10])} },
	func(o *federated) {
		o.Spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpNotIn}}}
		for i := range 20_000 {
			o.Spec.ClusterSelector.MatchExpressions[0].Values = append(o.Spec.ClusterSelector.MatchExpressions[0].Values, fmt.Sprint("cluster", i))
		}
	},
	func(o *federated) {
		for i := range 256 {
			o.Spec.Clusters = append(o.Spec.Clusters, autoscaling.ClusterPreference{Name: fmt.Sprint(strings.Repeat("c", 200), i)})
		}
	},
}

func metric(text string) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"type":"External","external":{"metric":{"name":%q},"target":{"type":"AverageValue","averageValue":"1"}}}`, text)}
}

// federate creates objects, several at a time.
func federate(ctx context.Context, objects int) error {
	const writers = 8
	errs := make([]error, writers)
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for i := w; i < objects && errs[w] == nil; i += writers {
				o := federatedOf(fmt.Sprint("federated-", i))
				if i%4 == 0 { // more of them would measure the API server
					stuffings[i/4%len(stuffings)](o)
				}
				_, errs[w] = federating.AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(hostile).Create(ctx, o, metav1.CreateOptions{})
			}
		})
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// expectFederated makes an object of the neighbour, which gets its autoscaler, though it is behind all others in the queue.
func expectFederated(ctx context.Context, name string) {
	GinkgoHelper()
	_, err := ours.AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(namespace).Create(ctx, federatedOf(name), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() (*autoscalingv2.HorizontalPodAutoscaler, error) {
		return kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, name, metav1.GetOptions{})
	}).WithContext(ctx).WithTimeout(5 * time.Minute).Should(HaveField("Spec.MaxReplicas", BeEquivalentTo(math.MaxInt32)))
}
