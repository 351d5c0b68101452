// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"

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
		"a=2", "a: shop=1", "1 Provisioning=MachinesRequested Ready=Complete; 1 Provisioning=MachinesRequested Ready=Complete"),
	Entry("together with those of the same owner", []plan.Buffer{Chunks("b", 1, "cpu=1", dedicated("namespace")), Chunks("c", 1, "cpu=1", dedicated("namespace"))}, []plan.Pool{Site("a", "cpu=4", 9)},
		"a=1", "a: shop=1", "1 Provisioning=MachinesRequested Ready=Complete; 1 Provisioning=MachinesRequested Ready=Complete"),
	Entry("apart from those of another owner", []plan.Buffer{Chunks("b", 1, "cpu=1", dedicated("namespace")), Chunks("c", 1, "cpu=1", dedicated("namespace/ci"))}, []plan.Pool{Site("a", "cpu=4", 9)},
		"a=2", "a: ci=1 shop=1", "1 Provisioning=MachinesRequested Ready=Complete; 1 Provisioning=MachinesRequested Ready=Complete"),
	Entry("before those for all, where there is little room", []plan.Buffer{Chunks("b", 4, "cpu=1"), Chunks("c", 4, "cpu=1", dedicated("namespace"))}, []plan.Pool{Site("a", "cpu=4", 4)},
		"a=1", "a: shop=1", "4 Provisioning=NoRoom Ready=NoRoom; 4 Provisioning=MachinesRequested Ready=Complete"),
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
