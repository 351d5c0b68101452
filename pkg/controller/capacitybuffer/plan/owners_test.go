// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
)

var _ = Describe("Owners of machines (laws 8 and 11)", func() {
	// ownedBy is a view with so many buffers, each in a namespace of its own that owns its machines.
	ownedBy := func(n int) plan.View {
		v := plan.View{Pools: []plan.Pool{Site("a", "cpu=4", 99)}}
		for i := range n {
			b := Chunks("b", 1, "cpu=1", dedicated("namespace"))
			b.Object.Namespace = fmt.Sprintf("n%02d", i)
			v.Buffers = append(v.Buffers, b)
		}
		return v
	}

	It("are those of the first 20 namespaces by name, whichever has the oldest buffer", func() {
		v := ownedBy(21)
		oldest := v.Buffers[20].Object
		oldest.CreationTimestamp.Time = oldest.CreationTimestamp.Add(-time.Hour)
		d := plan.New(v).Decisions
		Expect(d[19].Problem).To(BeNil())
		Expect(d[20].Problem.Message).To(Equal("machines can be dedicated to at most 20 different owners"))
	})

	It("leave machines for all pods, however many they are", func() {
		v := ownedBy(20)
		v.Buffers = append(v.Buffers, Chunks("z", 1, "cpu=1"))
		p := plan.New(v)
		Expect(p.Decisions[20].Problem).To(BeNil())
		Expect(Requests(p)).To(Equal("a=21"))
	})

	It("are as many, whether or not chunks for all pods come first", func() {
		v := ownedBy(20)
		common := Chunks("b", 1, "cpu=1")
		common.Object.Namespace = "a"
		v.Buffers = append(v.Buffers, common)
		p := plan.New(v)
		Expect(p.Decisions[20].Problem).To(BeNil())
		Expect(Requests(p)).To(Equal("a=21"))
	})

	It("are up to eight namespaces", func() {
		v := plan.View{Buffers: []plan.Buffer{Chunks("b", 1, "cpu=1", dedicated("namespace/a,namespace/b,namespace/c,namespace/d,namespace/e,namespace/f,namespace/g,namespace/h"))}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}}
		Expect(dedications(After(v))).To(Equal("a: a,b,c,d,e,f,g,h=1"))
	})

	It("do not keep others from being read, however long their names are", func() {
		long := "workload"
		for _, letter := range "abcdefg" {
			long += ",namespace/" + strings.Repeat(string(letter), 134)
		}
		b := NewBuffer("b", "{scalableRef: {apiGroup: apps, kind: Deployment, name: "+strings.Repeat("w", 253)+"}, replicas: 1}", WithWorkload(1, PodSpec("cpu=1")), dedicated(long))
		v := After(plan.View{Buffers: []plan.Buffer{b, Chunks("c", 1, "cpu=1", dedicated("namespace"))}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}})
		Expect(machine.ParseDedications(v.Reserves[0].Annotations[machine.DedicatedAnnotation])).To(Equal([]machine.Dedication{{Owner: Shop, Machines: 1}}))
		Expect(plan.New(v).Decisions[0].Problem.Message).To(Equal("annotation dedicated: the names of all workloads and namespaces have 1214 characters, at most 1024 are possible"))
	})

	DescribeTable("are not what is no word for one",
		func(annotation, kind string) {
			b := NewBuffer("b", "{scalableRef: {apiGroup: example.com, kind: "+kind+", name: web}, replicas: 1}", dedicated(annotation))
			b.Scale, b.Newest = rolledOut(one).Scale, rolledOut(one).Newest
			Expect(plan.New(plan.View{Buffers: []plan.Buffer{b}}).Decisions[0].Problem.Message).To(HavePrefix("annotation dedicated: %q is neither", annotation))
		},
		Entry("another word, for a workload", "true", "Rollout"),
		Entry("a workload whose kind would be read as more than one", "workload", `"Roll=9 out"`),
	)

	It("have no part in MachineDeployments that hold none of their chunks", func() {
		v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 1, "cpu=1", dedicated("namespace"), selecting("b")), Chunks("c", 1, "cpu=1", selecting("a"))},
			Pools: []plan.Pool{Site("a", "cpu=4", 9), Site("b", "cpu=4", 9)}})
		Expect(Spread(v)).To(Equal("a=1 b=1"))
		Expect(dedications(v)).To(Equal("b: shop=1"))
	})

	It("keep their machines from counting for all pods, which prefer the machines that they have (law 6)", func() {
		common, owned := Chunks("c", 1, "cpu=1"), Chunks("b", 2, "cpu=3", dedicated("namespace"))
		v := After(plan.View{Buffers: []plan.Buffer{owned, common}, Pools: []plan.Pool{Site("b", "cpu=4", 9)}})
		Expect([]string{Spread(v), dedications(v)}).To(Equal([]string{"b=3", "b: shop=2"}))
		v.Pools = append(v.Pools, Site("a", "cpu=4", 9))
		Expect(plan.New(v).Requests).To(BeEmpty())
		v.Buffers = []plan.Buffer{Chunks("c", 2, "cpu=3")}
		Expect(Requests(plan.New(v))).To(Equal("a=1 b=1"), "only one of those in b was for all")
	})

	It("do not prefer a MachineDeployment for the machines that it holds for all pods", func() {
		v := After(plan.View{Buffers: []plan.Buffer{Chunks("c", 1, "cpu=1", selecting("b"))}, Pools: []plan.Pool{Site("a", "cpu=4", 9), Site("b", "cpu=4", 9)}})
		v.Buffers = append(v.Buffers, Chunks("b", 1, "cpu=1", dedicated("namespace")))
		v = After(v)
		Expect([]string{Spread(v), dedications(v)}).To(Equal([]string{"a=1 b=1", "a: shop=1"}))
	})

	It("keep their machines while a buffer that cannot be read keeps others", func() {
		unreadable := Chunks("u", 1, "cpu=1")
		unreadable.Lacks, unreadable.Object.Status.Replicas = "no right", new(int32(2))
		v := plan.View{Buffers: []plan.Buffer{unreadable, Chunks("b", 1, "cpu=1", dedicated("namespace"))}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}, Reserves: reserved("a", 3)}
		Expect(Requests(plan.New(v))).To(Equal("a=3"))
		Expect(plan.New(v).Requests[0].Dedicated).To(Equal([]machine.Dedication{{Owner: Shop, Machines: 1}}))
	})
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
