// SPDX-License-Identifier: Apache-2.0

package mutation_test

import (
	"fmt"
	"maps"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
)

func newWorker(annotations map[string]string) *extensionsv1alpha1.Worker {
	return &extensionsv1alpha1.Worker{Spec: extensionsv1alpha1.WorkerSpec{Pools: []extensionsv1alpha1.WorkerPool{
		{Name: "shop", Minimum: 3, Maximum: 9, Annotations: annotations},
		{Name: "other", Minimum: 1, Maximum: 5, Annotations: map[string]string{machine.BoundsAnnotation: "1:5:1"}},
	}}}
}

func excess(text string) *intstr.IntOrString { return ptr.To(intstr.Parse(text)) }

var _ = Describe("The Worker that gardenlet writes", func() {
	DescribeTable("has for its pool", func(pool v1alpha1.Pool, before, after map[string]string) {
		pool.Name = "shop"
		config := &v1alpha1.EvenkeelConfig{Pools: []v1alpha1.Pool{pool, {Name: "gone", Excess: excess("1")}}}
		w := newWorker(before)
		Expect(mutation.Pools(w, config)).To(Succeed())
		Expect(w).To(Equal(newWorker(after)))
		Expect(mutation.Pools(w, config)).To(Succeed())
		Expect(w).To(Equal(newWorker(after)), "again, it stays the same")
	},
		Entry("a count", v1alpha1.Pool{Excess: excess("2")}, nil, map[string]string{machine.BoundsAnnotation: "3:9:2"}),
		Entry("a percentage", v1alpha1.Pool{Excess: excess("10%")}, nil, map[string]string{machine.BoundsAnnotation: "3:9:10%"}),
		Entry("resources", v1alpha1.Pool{Excess: excess("cpu=16,memory=64Gi")}, nil, map[string]string{machine.BoundsAnnotation: "3:9:cpu=16,memory=64Gi"}),
		Entry("no reserve", v1alpha1.Pool{Excess: excess("0")}, nil, map[string]string{machine.BoundsAnnotation: "3:9:0"}),
		Entry("narrower bounds", v1alpha1.Pool{Bounds: "4:7:2"}, nil, map[string]string{machine.BoundsAnnotation: "4:7:2"}),
		Entry("bounds within a minimum that was raised", v1alpha1.Pool{Bounds: "1:7:2"}, nil, map[string]string{machine.BoundsAnnotation: "3:7:2"}),
		Entry("bounds within a maximum that was lowered", v1alpha1.Pool{Bounds: "4:12:2"}, nil, map[string]string{machine.BoundsAnnotation: "4:9:2"}),
		Entry("bounds below a minimum that was raised", v1alpha1.Pool{Bounds: "1:2:1"}, nil, map[string]string{machine.BoundsAnnotation: "3:3:1"}),
		Entry("bounds above a maximum that was lowered", v1alpha1.Pool{Bounds: "10:12:1"}, nil, map[string]string{machine.BoundsAnnotation: "9:9:1"}),
		Entry("balance beside it", v1alpha1.Pool{Excess: excess("2"), Balance: machine.BalanceScaleUp}, map[string]string{"a": "b"},
			map[string]string{"a": "b", machine.BoundsAnnotation: "3:9:2", machine.BalanceAnnotation: "ScaleUp"}),
		Entry("balance alone", v1alpha1.Pool{Balance: machine.BalanceOff}, nil, map[string]string{machine.BalanceAnnotation: "Off"}),
		Entry("balance beside an excess that its owner has annotated", v1alpha1.Pool{Balance: machine.BalanceScaleUp}, map[string]string{machine.PoolExcessAnnotation: "2"},
			map[string]string{machine.PoolExcessAnnotation: "2", machine.BoundsAnnotation: "3:9", machine.BalanceAnnotation: "ScaleUp"}),
		Entry("balance beside bounds of a maximum that was lowered", v1alpha1.Pool{Balance: machine.BalanceScaleUp}, map[string]string{machine.BoundsAnnotation: "3:12:2"},
			map[string]string{machine.BoundsAnnotation: "3:9:2", machine.BalanceAnnotation: "ScaleUp"}),
		Entry("one excess, whatever the worker was annotated with", v1alpha1.Pool{Excess: excess("2")},
			map[string]string{machine.PoolExcessAnnotation: "5", machine.BoundsAnnotation: "1:2:1"}, map[string]string{machine.BoundsAnnotation: "3:9:2"}),
	)

	DescribeTable("keeps what its owner has annotated, with minimum and maximum as they are now:", func(before, after map[string]string) {
		w := newWorker(before)
		for range 2 {
			Expect(mutation.Pools(w, &v1alpha1.EvenkeelConfig{Pools: []v1alpha1.Pool{{Name: "other", Bounds: "1:5:1"}}})).To(Succeed())
			Expect(w).To(Equal(newWorker(after)))
		}
	},
		Entry("nothing", nil, nil),
		Entry("annotations of others", map[string]string{"a": "b"}, map[string]string{"a": "b"}),
		Entry("an excess", map[string]string{machine.PoolExcessAnnotation: "2"}, map[string]string{machine.PoolExcessAnnotation: "2", machine.BoundsAnnotation: "3:9"}),
		Entry("bounds", map[string]string{machine.BoundsAnnotation: "3:9:2"}, map[string]string{machine.BoundsAnnotation: "3:9:2"}),
		Entry("narrower bounds", map[string]string{machine.BoundsAnnotation: "4:7:2"}, map[string]string{machine.BoundsAnnotation: "4:7:2"}),
		Entry("bounds of a maximum that was lowered", map[string]string{machine.BoundsAnnotation: "3:12:10%"}, map[string]string{machine.BoundsAnnotation: "3:9:10%"}),
		Entry("bounds of a minimum that was raised", map[string]string{machine.BoundsAnnotation: "1:2:1"}, map[string]string{machine.BoundsAnnotation: "3:3:1"}),
		Entry("bounds in a wrong form", map[string]string{machine.BoundsAnnotation: "3-9-2"}, map[string]string{machine.BoundsAnnotation: "3-9-2"}),
		Entry("an excess beside old bounds", map[string]string{machine.PoolExcessAnnotation: "2", machine.BoundsAnnotation: "1:12:1"},
			map[string]string{machine.PoolExcessAnnotation: "2", machine.BoundsAnnotation: "3:9:1"}),
	)

	It("stays as it is without pools", func() {
		w := newWorker(nil)
		Expect(mutation.Pools(w, &v1alpha1.EvenkeelConfig{})).To(Succeed())
		Expect(w).To(Equal(newWorker(nil)))
	})

	DescribeTable("has bounds on each pool for an unmodified cluster-autoscaler:", func(pools []v1alpha1.Pool, before, after map[string]string) {
		config := &v1alpha1.EvenkeelConfig{Pools: pools, Autoscaler: v1alpha1.AutoscalerUpstream}
		w := newWorker(before)
		Expect(mutation.Pools(w, config)).To(Succeed())
		Expect(w).To(Equal(newWorker(after)))
		Expect(mutation.Pools(w, config)).To(Succeed())
		Expect(w).To(Equal(newWorker(after)), "again, it stays the same")
	},
		Entry("those of the worker", nil, nil, map[string]string{machine.BoundsAnnotation: "3:9"}),
		Entry("beside a balance", []v1alpha1.Pool{{Name: "shop", Balance: machine.BalanceScaleUp}}, nil,
			map[string]string{machine.BoundsAnnotation: "3:9", machine.BalanceAnnotation: "ScaleUp"}),
		Entry("beside an excess by annotation", nil, map[string]string{machine.PoolExcessAnnotation: "2"},
			map[string]string{machine.BoundsAnnotation: "3:9", machine.PoolExcessAnnotation: "2"}),
		Entry("with an excess", []v1alpha1.Pool{{Name: "shop", Excess: excess("2")}}, nil, map[string]string{machine.BoundsAnnotation: "3:9:2"}),
		Entry("not other ones than the owner wrote", nil, map[string]string{machine.BoundsAnnotation: "4:8:1"}, map[string]string{machine.BoundsAnnotation: "4:8:1"}),
	)

	It("has no bounds that are longer than the manager reads, after minimum and maximum have gained digits", func() {
		var amounts []string
		for i, length := range []int{62, 62, 62, 63} {
			amounts = append(amounts, fmt.Sprintf("%c%s=1", 'a'+i, strings.Repeat("x", length-3)))
		}
		long := strings.Join(amounts, ",")
		Expect(long).To(HaveLen(252), "256 with 3:9:")
		for _, before := range []map[string]string{{machine.BoundsAnnotation: "3:9:" + long}, {machine.BoundsAnnotation: "3:9:" + long, machine.PoolExcessAnnotation: "2"}} {
			_, err := machine.ParseBounds(before[machine.BoundsAnnotation])
			Expect(err).NotTo(HaveOccurred())
			w := newWorker(maps.Clone(before))
			w.Spec.Pools[0].Minimum, w.Spec.Pools[0].Maximum = 10, 19
			Expect(mutation.Pools(w, &v1alpha1.EvenkeelConfig{})).To(Succeed())
			Expect(w.Spec.Pools[0].Annotations).To(Equal(before))
		}
		w := newWorker(nil)
		w.Spec.Pools[0].Maximum = 10
		Expect(mutation.Pools(w, &v1alpha1.EvenkeelConfig{Pools: []v1alpha1.Pool{{Name: "shop", Excess: excess(long)}}})).To(MatchError(ContainSubstring("pool shop")))
		Expect(w.Spec.Pools[0].Annotations).To(BeEmpty())
	})

	It("has what can be read", func() {
		w := newWorker(nil)
		Expect(mutation.Pools(w, &v1alpha1.EvenkeelConfig{Pools: []v1alpha1.Pool{{Name: "shop", Excess: excess("x")}, {Name: "other", Bounds: "1:4:2"}}})).
			To(MatchError(ContainSubstring("pool shop")))
		Expect(w.Spec.Pools[0].Annotations).To(BeEmpty())
		Expect(w.Spec.Pools[1].Annotations).To(HaveKeyWithValue(machine.BoundsAnnotation, "1:4:2"))
	})
})
