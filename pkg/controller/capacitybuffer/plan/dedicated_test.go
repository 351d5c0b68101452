// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
)

func dedicated(to string) func(*plan.Buffer) {
	return func(b *plan.Buffer) { b.Object.Annotations[v1beta1.DedicatedAnnotation] = to }
}

// dedications are what Reserves dedicate after a plan, as in "a: shop=2".
func dedications(v plan.View) string {
	var words []string
	for _, r := range v.Reserves {
		if text := r.Annotations[machine.DedicatedAnnotation]; text != "" {
			words = append(words, fmt.Sprintf("%s: %s", r.Spec.Pools.Names[0], text))
		}
	}
	return strings.Join(words, "; ")
}

var _ = DescribeTable("Whose machines they are (11)",
	func(annotation string, b plan.Buffer, want string) {
		dedicated(annotation)(&b)
		v := plan.View{Buffers: []plan.Buffer{b}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}}
		if d := plan.New(v).Decisions[0]; d.Problem != nil {
			Expect(d.Problem.Reason).To(Equal(want))
			return
		}
		Expect(dedications(After(v))).To(Equal(want))
	},
	Entry("those of a workload", "workload", NewBuffer("b", "{scalableRef: {apiGroup: apps, kind: Deployment, name: web}, replicas: 2}", WithWorkload(3, PodSpec("cpu=3"))), "a: shop/Deployment/web=2"),
	Entry("those of a namespace", "namespace", Chunks("b", 2, "cpu=3"), "a: shop=2"),
	Entry("those of several", "namespace/ci, namespace,namespace/ci", Chunks("b", 2, "cpu=3"), "a: ci,shop=2"),
	Entry("those of a workload, where there is none", "workload", Chunks("b", 2, "cpu=3"), reason.DedicationInvalid),
	Entry("those of a workload whose name would be read as more than one", "workload", NewBuffer("b", "{scalableRef: {apiGroup: apps, kind: Deployment, name: \"web=9 x\"}, replicas: 2}", WithWorkload(3, PodSpec("cpu=3"))), reason.DedicationInvalid),
	Entry("everybody's, by mistake", "", Chunks("b", 2, "cpu=3"), reason.DedicationInvalid),
	Entry("another word", "true", Chunks("b", 2, "cpu=3"), reason.DedicationInvalid),
	Entry("a namespace without a name", "namespace/", Chunks("b", 2, "cpu=3"), reason.DedicationInvalid),
	Entry("a namespace whose name would be read as more than one", "namespace/ci=9 x", Chunks("b", 2, "cpu=3"), reason.DedicationInvalid),
	Entry("too many", "namespace/a,namespace/b,namespace/c,namespace/d,namespace/e,namespace/f,namespace/g,namespace/h,namespace/i", Chunks("b", 2, "cpu=3"), reason.DedicationInvalid),
)

var _ = DescribeTable("Dedicated chunks are packed (11)",
	func(buffers []plan.Buffer, pools []plan.Pool, want, owners, says string) {
		v := After(plan.View{Buffers: buffers, Pools: pools})
		Expect(Spread(v)).To(Equal(want))
		Expect(dedications(v)).To(Equal(owners))
		v = After(v)
		var all []string
		for _, d := range plan.New(v).Decisions {
			all = append(all, Standing(d.Buffer))
		}
		Expect(strings.Join(all, "; ")).To(Equal(says))
		Expect(plan.New(v).Requests).To(BeEmpty())
	},
	Entry("apart from those for all", []plan.Buffer{Chunks("b", 1, "cpu=1", dedicated("namespace")), Chunks("c", 1, "cpu=1")}, []plan.Pool{Site("a", "cpu=4", 9)},
		"a=2", "a: shop=1", "1 Provisioning=FitsExistingCapacity Ready=Complete; 1 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("together with those of the same owner", []plan.Buffer{Chunks("b", 1, "cpu=1", dedicated("namespace")), Chunks("c", 1, "cpu=1", dedicated("namespace"))}, []plan.Pool{Site("a", "cpu=4", 9)},
		"a=1", "a: shop=1", "1 Provisioning=FitsExistingCapacity Ready=Complete; 1 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("apart from those of another owner", []plan.Buffer{Chunks("b", 1, "cpu=1", dedicated("namespace")), Chunks("c", 1, "cpu=1", dedicated("namespace/ci"))}, []plan.Pool{Site("a", "cpu=4", 9)},
		"a=2", "a: ci=1 shop=1", "1 Provisioning=FitsExistingCapacity Ready=Complete; 1 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("before those for all, where there is little room", []plan.Buffer{Chunks("b", 4, "cpu=1"), Chunks("c", 4, "cpu=1", dedicated("namespace"))}, []plan.Pool{Site("a", "cpu=4", 4)},
		"a=1", "a: shop=1", "4 Provisioning=RequiresNewCapacity Ready=NoRoom; 4 Provisioning=FitsExistingCapacity Ready=Complete"),
)

var _ = It("machines of an owner come first among those that are ready (11)", func() {
	v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 4, "cpu=1", dedicated("namespace")), Chunks("c", 4, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}})
	Holds(1, reason.Growing)(&v.Pools[0])
	p := plan.New(v)
	Expect([]int{p.Decisions[0].Ready, p.Decisions[1].Ready}).To(Equal([]int{4, 0}))
})

var _ = It("there are at most so many owners (8)", func() {
	v := plan.View{Pools: []plan.Pool{Site("a", "cpu=4", 99)}}
	for i := range 25 {
		v.Buffers = append(v.Buffers, Chunks(fmt.Sprintf("b%02d", i), 1, "cpu=1", dedicated(fmt.Sprintf("namespace/n%02d", i))))
	}
	p := plan.New(v)
	Expect(p.Decisions[19].Problem).To(BeNil())
	Expect(p.Decisions[20].Problem.Reason).To(Equal(reason.TooManyBuffers))
	Expect(Requests(p)).To(Equal("a=20"))
})

var _ = It("no Reserve dedicates more machines than it asks for, whatever there was (11)", func() {
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		v := draw(t)
		for _, r := range plan.New(v).Requests {
			left := r.Machines
			for _, d := range r.Dedicated {
				left -= int(d.Machines)
			}
			if left < 0 {
				t.Fatalf("%+v", r)
			}
		}
	})
})

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
		Expect(d[20].Problem.Message).To(Equal("machines can be dedicated to at most 20 different owners: delete buffers with the annotation dedicated"))
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
		Expect(plan.New(v).Decisions[0].Problem.Message).To(Equal("annotation dedicated: the names of all workloads and namespaces have 1214 characters, more than 1024: name fewer"))
	})

	DescribeTable("are not what is no word for one",
		func(annotation, kind string) {
			b := NewBuffer("b", "{scalableRef: {apiGroup: example.com, kind: "+kind+", name: web}, replicas: 1}", dedicated(annotation))
			b.Scale, b.Newest = rolledOut(one).Scale, rolledOut(one).Newest
			Expect(plan.New(plan.View{Buffers: []plan.Buffer{b}}).Decisions[0].Problem.Message).To(HavePrefix("annotation dedicated: %q is invalid", annotation))
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
