// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

var _ = Describe("The least amounts of several machines", func() {
	amounts := func(cpu, memory string) corev1.ResourceList {
		all := corev1.ResourceList{}
		for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if text != "" {
				all[name] = resource.MustParse(text)
			}
		}
		return all
	}
	given := func(all ...corev1.ResourceList) []corev1.ResourceList { return all }

	DescribeTable("are",
		func(all []corev1.ResourceList, want corev1.ResourceList) {
			got := pool.LeastAmounts(all)
			Expect(got == nil).To(Equal(want == nil))
			Expect(equality.Semantic.DeepEqual(got, want)).To(BeTrue(), "%v", got)
		},
		Entry("the smallest of each resource, whichever machine has it", given(amounts("4", "8Gi"), amounts("8", "4Gi")), amounts("4", "4Gi")),
		Entry("only of resources that all machines offer", given(amounts("4", "8Gi"), amounts("8", "")), amounts("4", "")),
		Entry("only of resources that all machines offer, in any order", given(amounts("8", ""), amounts("4", "8Gi")), amounts("4", "")),
		Entry("those of the machines that are known", given(nil, amounts("4", "8Gi"), nil, amounts("2", "8Gi")), amounts("2", "8Gi")),
		Entry("not known if no machine is", given(nil, nil), nil),
		Entry("not known without machines", given(), nil),
		Entry("nothing if a machine offers nothing", given(amounts("4", "8Gi"), amounts("", "")), amounts("", "")),
	)

	It("are computed on a copy", func() {
		first := amounts("4", "8Gi")
		pool.LeastAmounts(given(first, amounts("2", "")))
		Expect(first).To(Equal(amounts("4", "8Gi")))
	})
})
