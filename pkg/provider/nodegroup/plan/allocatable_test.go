// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

var _ = Describe("What pods can have", func() {
	DescribeTable("is what is usual",
		func(capacity, cpu, memory string) {
			q := resource.MustParse(capacity)
			all := Allocatable(corev1.ResourceList{"cpu": q, "memory": q}, nil)
			Expect([]int64{all.Cpu().MilliValue(), all.Memory().Value() >> 20}).To(Equal([]int64{mustMilli(cpu), mustMilli(memory) / 1000}))
		},
		Entry("of nothing", "0", "0", "0"),
		Entry("of a core", "1", "940m", "0"),
		Entry("of four", "4", "3920m", "0"),
		Entry("of ninety-six", "96", "95736m", "0"),
	)

	DescribeTable("of memory is what is usual",
		func(capacity, want string) {
			all := Allocatable(amounts("memory", capacity), nil)
			Expect(all.Memory().Value() >> 20).To(Equal(mustMilli(want) / 1000))
		},
		Entry("of little", "64Mi", "0"),
		Entry("of 4Gi", "4Gi", "2972"),
		Entry("of 8Gi", "8Gi", "6248"),
		Entry("of 256Gi", "256Gi", "249878"),
	)

	DescribeTable("leaves out less of each byte of memory, the more there is",
		func(from string, reserved int64) {
			small, large := resource.MustParse(from), resource.MustParse(from)
			large.Add(resource.MustParse("1k"))
			of := func(q resource.Quantity) int64 {
				all := Allocatable(corev1.ResourceList{"memory": q}, nil)
				return all.Memory().Value()
			}
			Expect(1000 - (of(large) - of(small))).To(Equal(reserved))
		},
		Entry("a quarter below 4Gi", "3Gi", int64(250)),
		Entry("a fifth from there", "4Gi", int64(200)),
		Entry("a tenth from 8Gi", "8Gi", int64(100)),
		Entry("6% from 16Gi", "16Gi", int64(60)),
		Entry("2% from 128Gi", "128Gi", int64(20)),
	)

	It("is all but what is said to be reserved, and that alone where it is said", func() {
		all := Allocatable(amounts("cpu", "4", "memory", "16Gi", "pods", "110", "ephemeral-storage", "100Gi"), amounts("cpu", "80m", "memory", "1Gi"))
		Expect(quantities(all)).To(Equal(map[string]string{"cpu": "3920m", "memory": "15Gi", "pods": "110", "ephemeral-storage": "90Gi"}))
	})

	It("is between nothing and everything, and more of a larger machine", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			name := rapid.SampledFrom([]corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "example.org/x"}).Draw(t, "name")
			a := rapid.Int64Range(0, math.MaxInt64/2000).Draw(t, "a")
			b := rapid.Int64Range(a, math.MaxInt64/2000).Draw(t, "b")
			of := func(n int64) int64 {
				q := Allocatable(corev1.ResourceList{name: *resource.NewQuantity(n, resource.DecimalSI)}, nil)[name]
				return q.MilliValue()
			}
			if x, y := of(a), of(b); x < 0 || x > a*1000 || x > y {
				t.Fatalf("%s: %d of %d, %d of %d", name, x, a, y, b)
			}
		})
	})
})

func mustMilli(text string) int64 {
	q := resource.MustParse(text)
	return q.MilliValue()
}
