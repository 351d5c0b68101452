// SPDX-License-Identifier: Apache-2.0

package reserves_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	. "github.com/evenkeel/evenkeel/test/builders/reserves"
)

var _ = Describe("A preview", func() {
	It("carries out a plan on copies, and is at rest then", func() {
		v := plan.View{Now: Monday, Reserves: []*v1alpha1.Reserve{Wish("shop", Replicas(3))}, Pools: []plan.Pool{
			Site("a", 1), Site("b", 1, Annotated(machine.RequestedExcessAnnotation, "gone=7"), Annotated(machine.DedicatedAnnotation, "ci=1")),
		}}
		Holds(1, 1, "Complete")(&v.Pools[0])
		p := plan.New(v)
		Expect(Requests(p)).To(Equal("a: shop=2, b: shop=1"))
		for i, r := range p.Requests {
			d, err := After(r)
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Annotations).To(Equal(map[string]string{machine.RequestedExcessAnnotation: r.Text}), "an empty annotation is none")
			Expect(d.Status).To(Equal(v.Pools[i].Deployment.Status))
			v.Pools[i].Deployment = d
		}
		after := p.Decisions[0].After(Monday)
		Expect(ready(after).Reason).To(Equal("Growing"))
		Expect(after.Status.ReadyReplicas).To(BeEquivalentTo(1))
		Expect(v.Reserves[0].Status).To(BeZero(), "what was shown stays as it was")
		v.Reserves[0] = after
		Expect(plan.New(v).Requests).To(BeEmpty())
	})
})
