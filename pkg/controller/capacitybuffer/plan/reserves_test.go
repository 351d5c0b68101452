// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
)

var _ = Describe("The name of a Reserve", func() {
	It("fits, however long that of the MachineDeployment is", func() {
		a, b := plan.ReserveName(strings.Repeat("a", 236)), plan.ReserveName(strings.Repeat("a", 237))
		Expect(a).To(Equal("capacity-buffers." + strings.Repeat("a", 236)))
		Expect(a).To(HaveLen(253))
		Expect(b).To(MatchRegexp(`^capacity-buffers\.[0-9a-f]{64}$`))
		Expect(plan.ReserveName(strings.Repeat("a", 238))).NotTo(Equal(b))
	})
})

var _ = Describe("Machines of buffers that cannot be read (law 5)", func() {
	// unread is a view in which a buffer had two chunks and cannot be read now.
	unread := func(change func(*autoscaling.Reserve)) plan.View {
		b := Chunks("b", 1, "cpu=1")
		b.Lacks, b.Object.Status.Replicas = "no right", ptr.To[int32](2)
		r := plan.NewReserve(Namespace, plan.Request{Pool: "a", Machines: 2})
		change(r)
		return plan.View{Buffers: []plan.Buffer{b}, Reserves: []*autoscaling.Reserve{r}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}}
	}

	It("stay", func() {
		Expect(plan.New(unread(func(*autoscaling.Reserve) {})).Requests).To(BeEmpty())
	})

	It("stay as many as there may be chunks", func() {
		Expect(Requests(plan.New(unread(func(r *autoscaling.Reserve) { r.Spec.Replicas = 5 })))).To(Equal("a=2"))
	})

	DescribeTable("stay where another client has moved them",
		func(names ...string) {
			v := unread(func(r *autoscaling.Reserve) { r.Spec.Pools.Names = names })
			Expect(plan.New(v).Requests).To(BeEmpty())
		},
		Entry("to two MachineDeployments", "a", "c"),
		Entry("to none"),
	)

	DescribeTable("stay dedicated to the owners of these buffers, and to no others",
		func(to, want string) {
			owned := Chunks("b", 2, "cpu=3", dedicated("namespace"))
			v := After(plan.View{Buffers: []plan.Buffer{owned, Chunks("c", 1, "cpu=1", dedicated("namespace/ci"))}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}})
			Expect(dedications(v)).To(Equal("a: ci=1 shop=2"))
			v.Buffers[0].Lacks = "no right"
			dedicated(to)(&v.Buffers[0])
			v = After(v)
			Expect([]string{Spread(v), dedications(v)}).To(Equal([]string{"a=3", want}))
			Expect(plan.New(v).Requests).To(BeEmpty(), "law 9")
		},
		Entry("the same owner", "namespace", "a: ci=1 shop=2"),
		Entry("another owner, which the buffer names meanwhile", "namespace/web", "a: ci=1"),
	)

	It("are dedicated anew if the annotation about that is invalid", func() {
		v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 2, "cpu=3", dedicated("namespace"))}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}})
		v.Reserves[0].Annotations[machine.DedicatedAnnotation] = "shop"
		Expect(dedications(After(v))).To(Equal("a: shop=2"))
	})
})

var _ = It("A workload of a kind that is not known holds the same machines, whatever the order of Reserves (law 9)", func() {
	b := NewBuffer("b", "{scalableRef: {apiGroup: example.com, kind: Rollout, name: web}, replicas: 1}")
	b.Object.Status.Replicas = ptr.To[int32](1)
	reserves := []*autoscaling.Reserve{plan.NewReserve(Namespace, plan.Request{Pool: "a", Machines: 2}), plan.NewReserve(Namespace, plan.Request{Pool: "b", Machines: 2})}
	for range 2 {
		p := plan.New(plan.View{Buffers: []plan.Buffer{b}, Pools: []plan.Pool{Site("a", "cpu=4", 9), Site("b", "cpu=4", 9)}, Reserves: reserves})
		Expect(Requests(p)).To(Equal("a=1 b=-"))
		slices.Reverse(reserves)
	}
})

var _ = Describe("The Reserve after a request", func() {
	owned := []machine.Dedication{{Owner: Shop, Machines: 1}}

	It("is gone if no machine is asked for", func() {
		Expect(plan.Request{Pool: "a", Reserve: reserved("a", 2)[0]}.After(Namespace)).To(BeNil())
	})

	It("is new where there was none, and marked as the controller's own", func() {
		r := plan.Request{Pool: "a", Machines: 1, Dedicated: owned}.After(Namespace)
		Expect([]string{r.Namespace, r.Name, r.Labels[plan.OwnLabel]}).To(Equal([]string{Namespace, "capacity-buffers.a", "true"}))
		Expect(r.Spec).To(And(HaveField("Replicas", BeEquivalentTo(1)), HaveField("Pools.Names", Equal([]string{"a"}))))
		Expect(r.Annotations).To(Equal(map[string]string{machine.DedicatedAnnotation: "shop=1"}))
	})

	It("keeps what others have written, and asks for what is requested", func() {
		r := plan.NewReserve(Namespace, plan.Request{Pool: "a", Machines: 2, Dedicated: owned})
		r.Annotations["note"], r.ResourceVersion = "x", "7"
		after := plan.Request{Pool: "a", Machines: 3, Reserve: r}.After(Namespace)
		Expect(after.Spec.Replicas).To(BeEquivalentTo(3))
		Expect(after.ResourceVersion).To(Equal("7"))
		Expect(after.Annotations).To(Equal(map[string]string{"note": "x"}), "none of them is dedicated any more")
		Expect(r.Spec.Replicas).To(BeEquivalentTo(2), "the Reserve of the view is unchanged")
	})

	It("has no annotations if nothing is dedicated", func() {
		Expect(plan.NewReserve(Namespace, plan.Request{Pool: "a", Machines: 1}).Annotations).To(BeEmpty())
	})

	DescribeTable("is gone if nothing asks for machines, also if another client has moved them",
		func(names ...string) {
			r := reserved("a", 2)
			r[0].Spec.Pools.Names = names
			Expect(Requests(plan.New(plan.View{Reserves: r}))).To(Equal("a=-"))
		},
		Entry("to two MachineDeployments", "a", "c"),
		Entry("to none"),
	)
})
