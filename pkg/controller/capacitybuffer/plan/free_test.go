// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
)

func sharing(text string) func(*plan.Buffer) {
	return func(b *plan.Buffer) { b.Object.Annotations[v1beta1.FreeRoomAnnotation] = text }
}

// withServing has machines of a MachineDeployment serve, with a pod on each that leaves room for so many CPUs.
func withServing(v plan.View, p plan.Pool, free ...int) plan.View {
	v.Serving = nil
	for i, cpus := range free {
		n := pool.NodeLike(p.Node, fmt.Sprint("serving-", i))
		pod := fit.Read(Bound("busy", Now, func(p *corev1.Pod) { p.Spec = PodSpec(fmt.Sprintf("cpu=%d", 4-cpus)) }), false)
		v.Serving = append(v.Serving, plan.Serving{Deployment: p.Deployment, Node: n, Pods: []*fit.Pod{pod}})
	}
	return v
}

var _ = Describe("Free room on machines that serve (law 14)", func() {
	a := Site("a", "cpu=4", 99, worker("w"))
	view := func(free []int, buffers ...plan.Buffer) plan.View {
		return withServing(plan.View{Now: Now, Buffers: buffers, Pools: []plan.Pool{a}}, a, free...)
	}

	DescribeTable("holds chunks of buffers that use it",
		func(v plan.View, want, says string) {
			v = After(v)
			Expect(Spread(v)).To(Equal(want))
			p := plan.New(v)
			Expect(p.Requests).To(BeEmpty(), "law 9")
			ready := plan.NewStatus(p.Decisions[0], Now).Conditions[3]
			Expect(ready.Reason + ": " + ready.Message).To(Equal(says))
		},
		Entry("all of them", view([]int{2, 1}, Chunks("b", 3, "cpu=1", sharing("true"))), "", "Complete: room for 3 of 3 chunks is ready on machines that serve"),
		Entry("not more than fit, and the others are in reserve", view([]int{2, 1}, Chunks("b", 8, "cpu=1", sharing("true"))), "a=2", "Complete: room for 8 of 8 chunks is ready in a and on machines that serve"),
		Entry("not those that fit on none", view([]int{2, 2}, Chunks("b", 1, "cpu=3", sharing("true"))), "a=1", "Complete: room for 1 of 1 chunk is ready in a"),
		Entry("not by default", view([]int{4}, Chunks("b", 1, "cpu=1")), "a=1", "Complete: room for 1 of 1 chunk is ready in a"),
		Entry("not if they do not use it", view([]int{4}, Chunks("b", 1, "cpu=1", sharing("false"))), "a=1", "Complete: room for 1 of 1 chunk is ready in a"),
		Entry("not those of an older buffer that does not use it", view([]int{4}, Chunks("a", 2, "cpu=1"), Chunks("b", 2, "cpu=1", sharing("true"))), "a=1", "Complete: room for 2 of 2 chunks is ready in a"),
		Entry("in the pool that is named", view([]int{4}, Chunks("b", 1, "cpu=1", sharing("true"), InPool("a"))), "", "Complete: room for 1 of 1 chunk is ready on machines that serve"),
		Entry("in the worker pool that is named", view([]int{4}, Chunks("b", 1, "cpu=1", sharing("true"), InPool("w"))), "", "Complete: room for 1 of 1 chunk is ready on machines that serve"),
		Entry("not in another one", view([]int{4}, Chunks("b", 1, "cpu=1", sharing("true"), InPool("x"))), "",
			`PoolNotFound: there is no room for 1 of 1 chunk: no MachineDeployment or worker pool named "x" can hold chunks`),
		Entry("also where no machine can be in reserve", withServing(plan.View{Now: Now, Buffers: []plan.Buffer{Chunks("b", 2, "cpu=1", sharing("true"))}}, a, 1), "",
			"NoPools: there is no room for 1 of 2 chunks: no MachineDeployment has both bounds with a maximum and a known machine size"),
	)

	It("counts once for several buffers, the oldest first", func() {
		older := Chunks("c", 2, "cpu=1", sharing("true"), func(b *plan.Buffer) { b.Object.CreationTimestamp.Time = Now.Add(-time.Hour) })
		p := plan.New(view([]int{3}, Chunks("b", 2, "cpu=1", sharing("true")), older, Chunks("d", 1, "cpu=2", sharing("true")), Chunks("e", 1, "cpu=1")))
		free := 0
		for _, d := range p.Decisions {
			free += d.Free * map[string]int{"b": 1, "c": 1, "d": 2, "e": 100}[d.Buffer.Name]
		}
		Expect(free).To(Equal(3))
		p = plan.New(view([]int{3}, Chunks("b", 2, "cpu=1", sharing("true")), older))
		Expect([]int{p.Decisions[0].Free, p.Decisions[1].Free}).To(Equal([]int{1, 2}))
	})

	It("is replaced at once when pods take it, and counts again when it has been free for a while", func() {
		v := After(view([]int{2}, Chunks("b", 2, "cpu=1", sharing("true"))))
		Expect(Spread(v)).To(BeEmpty())
		at := func(minutes int, free int) string {
			v.Now = Now.Add(time.Duration(minutes) * time.Minute)
			v = After(withServing(v, a, free))
			return Spread(v)
		}
		Expect(at(1, 1)).To(Equal("a=1"))
		Expect(at(2, 2)).To(Equal("a=1"))
		Expect(plan.New(v).Again).To(Equal(5 * time.Minute))
		Expect(at(5, 2)).To(Equal("a=1"))
		Expect(at(9, 2)).To(Equal("a=1"))
		Expect(at(10, 2)).To(BeEmpty())
		Expect(plan.New(v).Again).To(Equal(10 * time.Minute))
		Expect(plan.New(v).Decisions[0].After(v.Now.Add(time.Hour)).Status).To(Equal(v.Buffers[0].Object.Status), "law 9")
	})

	It("is remembered for each of two buffers of the same name", func() {
		other := Chunks("b", 1, "cpu=3", sharing("true"), func(b *plan.Buffer) { b.Object.Namespace = "zoo" })
		v := view([]int{2}, Chunks("b", 2, "cpu=1", sharing("true")), other)
		v.Free = plan.New(v).Free
		free := map[string]int{}
		for _, d := range plan.New(v).Decisions {
			free[d.Buffer.Namespace] = d.Free
		}
		Expect(free).To(Equal(map[string]int{Shop: 2, "zoo": 0}))
	})

	It("holds more chunks at once if a buffer asks for more", func() {
		v := After(view([]int{4}, Chunks("b", 1, "cpu=1", sharing("true"))))
		*v.Buffers[0].Object.Spec.Replicas = 4
		Expect(Spread(After(v))).To(BeEmpty())
	})

	It("holds what has not been used of a buffer that fills once", func() {
		v := view([]int{4}, Once("b", 3, "cpu=1", sharing("true")))
		v.FillOnce, v.Now, v.Bound = true, minute, []*corev1.Pod{Bound("1", minute)}
		Expect(plan.New(v).Decisions[0].Free).To(Equal(2))
	})

	DescribeTable("cannot be used", func(says string, change ...func(*plan.Buffer)) {
		d := plan.New(view([]int{4}, Chunks("b", 1, "cpu=1", change...))).Decisions[0]
		Expect(d.Problem).To(And(HaveField("Reason", reason.FreeRoomInvalid), HaveField("Message", ContainSubstring(says))))
		Expect(reason.CapacityBuffer[v1beta1.ConditionReadyForProvisioning].Find(d.Problem.Reason).Meaning).NotTo(BeEmpty())
	},
		Entry("where machines are dedicated", "cannot be dedicated", sharing("true"), dedicated("namespace")),
		Entry("with another value", `"yes" is invalid`, sharing("yes")),
	)

	It("and the reserve together hold all chunks, and nothing changes at rest", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			free := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(t, "free")
			var buffers []plan.Buffer
			for i := range rapid.IntRange(1, 4).Draw(t, "buffers") {
				buffers = append(buffers, Chunks(fmt.Sprint("b", i), rapid.IntRange(0, 9).Draw(t, "chunks"), fmt.Sprintf("cpu=%d", rapid.IntRange(1, 3).Draw(t, "size")),
					sharing(rapid.SampledFrom([]string{"true", "false"}).Draw(t, "shares"))))
			}
			v := After(view(free, buffers...))
			p, room := plan.New(v), 0
			for _, cpus := range free {
				room += cpus
			}
			for _, d := range p.Decisions {
				if d.Ready != d.Chunks || d.Free > d.Ready {
					t.Fatalf("%s: %d of %d, %d of them on machines that serve", d.Buffer.Name, d.Ready, d.Chunks, d.Free)
				}
				room -= d.Free * int(d.Template.Template.Spec.Containers[0].Resources.Requests.Cpu().Value())
			}
			if room < 0 || len(p.Requests) > 0 {
				t.Fatalf("%d CPUs too many, %s", -room, Requests(p))
			}
		})
	})
})
