// SPDX-License-Identifier: Apache-2.0

package nodegroups_test

import (
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
)

// worker is a Worker in a namespace, with a pool for each text of bounds; "-" is a pool without any.
func worker(namespace, name string, bounds ...string) *extensionsv1alpha1.Worker {
	w := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, text := range bounds {
		pool := extensionsv1alpha1.WorkerPool{Name: text}
		if text != "-" {
			pool.Annotations = map[string]string{machine.BoundsAnnotation: text}
		}
		w.Spec.Pools = append(w.Spec.Pools, pool)
	}
	return w
}

var _ = DescribeTable("The server offers the pools of a Shoot",
	func(ctx SpecContext, offered bool, workers ...client.Object) {
		scheme := runtime.NewScheme()
		Expect(extensionsv1alpha1.AddToScheme(scheme)).To(Succeed())
		reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(workers...).Build()
		Expect(nodegroups.Offered(ctx, reader, "shoot")).To(Equal(offered))
	},
	Entry("if each has bounds", true, worker("shoot", "a", "1:5", "0:3:1")),
	Entry("not if one has none", false, worker("shoot", "a", "1:5", "-")),
	Entry("not if those of one are invalid", false, worker("shoot", "a", "1:5", "5:1")),
	Entry("not if one of another Worker has none", false, worker("shoot", "a", "1:5"), worker("shoot", "b", "-")),
	Entry("not before there is a Worker", false),
	Entry("whatever the Workers of others are", true, worker("shoot", "a", "1:5"), worker("other", "a", "-")),
	Entry("not because of a Worker of others", false, worker("other", "a", "1:5")),
	Entry("if there are none", true, worker("shoot", "a")),
)
