// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
)

func prepared(text string) func(*plan.Buffer) {
	return func(b *plan.Buffer) { b.Object.Annotations[v1beta1.PrepareAnnotation] = text }
}

func in(namespace string) func(*plan.Buffer) {
	return func(b *plan.Buffer) { b.Object.Namespace = namespace }
}

// naming is a buffer with a chunk of a PodTemplate of this name.
func naming(name string, change ...func(*plan.Buffer)) plan.Buffer {
	return NewBuffer(name, "{podTemplateRef: {name: "+name+"}, replicas: 1}", append([]func(*plan.Buffer){WithTemplate(PodSpec("cpu=1"))}, change...)...)
}

// preparations are what Reserves ask for after a plan, as in "a: shop Deployment/web".
func preparations(v plan.View) (all []string) {
	for _, r := range v.Reserves {
		for _, p := range r.Spec.Prepare {
			all = append(all, r.Spec.Pools.Names[0]+": "+p.Namespace+" "+strings.Join(p.Workloads, " "))
		}
	}
	return all
}

var _ = Describe("The images of buffers (law 12)", func() {
	site := Site("a", "cpu=4", 99)

	It("are asked for where the chunks of buffers are that want them", func() {
		v := After(plan.View{Pools: []plan.Pool{site, Site("b", "cpu=4", 99)}, Buffers: []plan.Buffer{
			Chunks("template", 1, "cpu=1", InPool("a"), prepared("true")), Chunks("again", 1, "cpu=1", InPool("a"), prepared("true")),
			NewBuffer("workload", "{"+ByWorkload+", replicas: 1}", WithWorkload(1, PodSpec("cpu=1")), InPool("b"), prepared("true"), in("web")),
			naming("plain"), naming("off", prepared("false"), in("other")),
		}})
		Expect(preparations(v)).To(ConsistOf("a: shop PodTemplate/web", "b: web Deployment/web"))
		for _, b := range v.Buffers {
			Expect(meta.FindStatusCondition(b.Object.Status.Conditions, v1beta1.ConditionReadyForProvisioning).Message).To(Equal("the buffer asks for 1 chunk"))
		}
		Expect(plan.New(v).Requests).To(BeEmpty())
		v.Buffers[0].Object.Annotations, v.Buffers[1].Object.Annotations = nil, nil
		Expect(preparations(After(v))).To(ConsistOf("b: web Deployment/web"))
	})

	It("are not asked for where a buffer has no chunk", func() {
		Expect(preparations(After(plan.View{Pools: []plan.Pool{site}, Buffers: []plan.Buffer{Chunks("b", 0, "cpu=1", prepared("true")), naming("c")}}))).To(BeEmpty())
	})

	DescribeTable("are not prepared, and the condition says why", func(b plan.Buffer, why string) {
		p := plan.New(plan.View{Pools: []plan.Pool{site}, Buffers: []plan.Buffer{b}})
		Expect(p.Requests).To(ConsistOf(HaveField("Prepare", BeEmpty())))
		c := meta.FindStatusCondition(plan.NewStatus(p.Decisions[0], Now).Conditions, v1beta1.ConditionReadyForProvisioning)
		Expect(c.Message).To(Equal("the buffer asks for 1 chunk; images are not prepared: " + why))
	},
		Entry("another value", Chunks("b", 1, "cpu=1", prepared("yes")), `annotation prepare: "yes" is invalid: use "true" or "false"`),
		Entry("a kind that has no pod template", rolledOut(PodSpec("cpu=1"), prepared("true"), func(b *plan.Buffer) { b.Object.Spec.Percentage, b.Object.Spec.Replicas = nil, ptr.To[int32](1) }), "the images of kind Rollout cannot be read"),
	)

	It("are those of the first twenty workloads of ten namespaces, in the order in which buffers count", func() {
		v := plan.View{Pools: []plan.Pool{site}}
		for i := range 11 {
			v.Buffers = append(v.Buffers, naming("first", prepared("true"), in(fmt.Sprintf("n%02d", i))))
		}
		for i := range 12 {
			v.Buffers = append(v.Buffers, naming(fmt.Sprintf("second%02d", i), prepared("true"), in("n00")))
		}
		p := plan.New(v)
		Expect(p.Requests).To(HaveLen(1))
		Expect(p.Requests[0].Prepare).To(HaveLen(machine.MaxPreparations))
		Expect(p.Requests[0].Prepare[0].Workloads).To(HaveLen(11))
		var without []string
		for _, d := range p.Decisions {
			if d.Unprepared != "" {
				Expect(d.Unprepared).To(Equal("a has too many other workloads"))
				without = append(without, d.Buffer.Namespace+"/"+d.Buffer.Name)
			}
		}
		Expect(without).To(Equal([]string{"n00/second10", "n00/second11", "n10/first"}))
		for _, entry := range p.Requests[0].Prepare {
			Expect(entry.Validate()).To(Succeed())
		}
	})

	It("stay while buffers cannot be read (law 5)", func() {
		v := After(plan.View{Pools: []plan.Pool{site}, Buffers: []plan.Buffer{naming("one", prepared("true")), naming("two", prepared("true"))}})
		want := []string{"a: shop PodTemplate/one PodTemplate/two"}
		Expect(preparations(v)).To(Equal(want))
		v.Buffers[1].Lacks, v.Buffers[1].Object.Status.Replicas = "no right", ptr.To[int32](1)
		Expect(preparations(After(v))).To(Equal(want))
		v.Buffers[0].Lacks, v.Buffers[0].Object.Status.Replicas = "no right", ptr.To[int32](1)
		Expect(preparations(After(v))).To(Equal(want))
	})

	It("stay in a MachineDeployment about which too little is known (law 5)", func() {
		v := After(plan.View{Pools: []plan.Pool{site}, Buffers: []plan.Buffer{naming("one", prepared("true"))}})
		v.Pools = slices.Clone(v.Pools)
		v.Pools[0].Node = nil
		Expect(preparations(After(v))).To(Equal([]string{"a: shop PodTemplate/one"}))
	})
})
