// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

func applied(text string) metav1.Object {
	return &metav1.ObjectMeta{Annotations: map[string]string{machine.AppliedReplicasAnnotation: text}}
}

var _ = Describe("The machines for workload", func() {
	DescribeTable("are what machine-controller-manager may act on",
		func(d metav1.Object, replicas, want int) {
			Expect(pool.Workload(d, int32(replicas))).To(BeEquivalentTo(want))
		},
		Entry("replicas", &metav1.ObjectMeta{}, 3, 3),
		Entry("less while growth is split", applied("3"), 9, 3),
		Entry("none while growth from zero is split", applied("0"), 9, 0),
		Entry("replicas once they are lowered below that", applied("5"), 3, 3),
		Entry("replicas lowered to zero", applied("5"), 0, 0),
		Entry("replicas where the annotation is invalid", applied("many"), 3, 3),
		Entry("replicas where the annotation is too large", applied("2147483648"), 3, 3),
		Entry("negative replicas, which stay invalid", applied("0"), -3, -3),
	)

	DescribeTable("are held back where",
		func(text string, want int, held bool) {
			d := &metav1.ObjectMeta{}
			if text != "" {
				d = applied(text).(*metav1.ObjectMeta)
			}
			got, is := pool.AppliedReplicas(d)
			Expect(is).To(Equal(held))
			Expect(got).To(BeEquivalentTo(want))
		},
		Entry("the annotation contains it", "3", 3, true),
		Entry("it is zero", "0", 0, true),
		Entry("not where it is missing", "", 0, false),
		Entry("not where it is invalid", "many", 0, false),
	)

	It("never exceed replicas, whatever the annotation contains", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			replicas := rapid.Int32().Draw(t, "replicas")
			text := rapid.OneOf(rapid.StringMatching(`[0-9]{1,10}`), rapid.String()).Draw(t, "applied")
			if n := pool.Workload(applied(text), replicas); n > replicas {
				t.Fatalf("%d machines for %d replicas and applied replicas %q", n, replicas, text)
			}
		})
	})
})
