// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

// of makes a pod one of a group.
func of(group string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(group)}
	}
}

// group adds a group of which so many pods start together. One that was added before is older.
func (s *story) group(name string, least int, change ...func(*PodGroup)) *story {
	if s.Groups == nil {
		s.Groups = map[string]PodGroup{}
	}
	g := PodGroup{Least: least, Created: Noon.Add(time.Duration(len(s.Groups)) * time.Second)}
	for _, f := range change {
		f(&g)
	}
	s.Groups["default/"+name] = g
	return s
}

func bound(n int) func(*PodGroup)   { return func(g *PodGroup) { g.Bound = n } }
func unclearGroup(g *PodGroup)      { g.Unclear = true }
func beyond(n int, s *story) *story { s.Beyond = n; return s }

func urgent(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](100) }

var _ = DescribeTable("A group of pods",
	expectPlan,
	Entry("gets a machine for each", "a+3(a-1 a-2 a-3)", "Released:3", tell().pool("a", 1, 3, 10).full().group("g", 3).waits(Pods(3, "p", 4000, of("g"))...)),
	Entry("gets machines of all pools", "a+1(a-1) b+2(b-1 b-2)", "Released:3",
		tell().pool("a", 1, 1, 10).pool("b", 1, 2, 10).full().group("g", 3).waits(Pods(3, "p", 4000, of("g"))...)),
	Entry("gets none if the reserve is too small", "", "NoReserve:3", tell().pool("a", 1, 2, 10).full().group("g", 3).waits(Pods(3, "p", 4000, of("g"))...)),
	Entry("gets none if max is too small", "", "NoReserve:3", tell().pool("a", 1, 3, 3).full().group("g", 3).waits(Pods(3, "p", 4000, of("g"))...)),
	Entry("uses the room that there is", "a+1(a-1)", "HasRoom:1 Released:1", tell().pool("a", 1, 3, 10).group("g", 2).waits(Pods(2, "p", 4000, of("g"))...)),
	Entry("uses the machines that come", "a+1(a-2)", "Coming:1 Released:1",
		tell().pool("a", 1, 3, 10, replicas(2)).full().group("g", 2).waits(Pods(2, "p", 4000, of("g"))...)),
	Entry("waits for its other pods", "", "NoReserve:2", tell().pool("a", 1, 3, 10).full().group("g", 3).waits(Pods(2, "p", 4000, of("g"))...)),
	Entry("waits for its other pods, of which one decision does not look at all", "", "BeyondBounds:2",
		beyond(1, tell().pool("a", 1, 3, 10).full().group("g", 3).waits(Pods(2, "p", 4000, of("g"))...))),
	Entry("starts without those that need not start with it", "a+2(a-1 a-2)", "NoReserve:1 Released:2",
		tell().pool("a", 1, 2, 10).full().group("g", 2).waits(Pods(3, "p", 4000, of("g"))...)),
	Entry("needs as many as do not run yet", "a+1(a-1)", "NoReserve:1 Released:1",
		tell().pool("a", 1, 1, 10).full().group("g", 3, bound(2)).waits(Pods(2, "p", 4000, of("g"))...)),
	Entry("of which enough run has its other pods start alone", "a+1(a-1)", "NoReserve:1 Released:1",
		tell().pool("a", 1, 1, 10).full().group("g", 3, bound(3)).waits(Pods(2, "p", 4000, of("g"))...)),
	Entry("counts only the pods that the scheduler has tried, once enough of them run", "a+1(a-1)", "Released:1",
		tell().pool("a", 1, 2, 10).full().group("g", 1, bound(1)).waits(Pod("p", 4000, of("g")), Pod("q", 3000, of("g"), Untried))),
	Entry("whose pods may start alone", "a+1(a-1)", "NoReserve:1 Released:1",
		tell().pool("a", 1, 1, 10).full().group("g", 0).waits(Pods(2, "p", 4000, of("g"))...)),
	Entry("is left to the autoscaler if it is not known", "", "Unclear:2", tell().pool("a", 1, 3, 10).full().waits(Pods(2, "p", 4000, of("g"))...)),
	Entry("is left to the autoscaler if it has rules that are not known", "", "Unclear:2",
		tell().pool("a", 1, 3, 10).full().group("g", 2, unclearGroup).waits(Pods(2, "p", 4000, of("g"))...)),
	Entry("is left to the autoscaler if it is undecided where one of its pods can run", "", "Unclear:2",
		tell().pool("a", 1, 3, 10).full().group("g", 2).waits(Pod("p", 4000, of("g")), Pod("q", 4000, of("g"), claimsDevice))),
	Entry("is left to the autoscaler if its pods use several schedulers", "", "Unclear:2", func() *story {
		s := tell().pool("a", 1, 3, 10).full().group("g", 2)
		s.Settings.Schedulers = nil
		return s.waits(Pod("p", 4000, of("g")), Pod("q", 4000, of("g"), func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }))
	}()),
	Entry("counts with pods that the scheduler has not tried yet", "a+2(a-1 a-2)", "Released:2",
		tell().pool("a", 1, 3, 10).full().group("g", 2).waits(Pod("p", 4000, of("g")), Pod("q", 3000, of("g"), Untried))),
	Entry("does not count before the scheduler has tried one of its pods", "", "",
		tell().pool("a", 1, 3, 10).full().group("g", 2).waits(Pods(2, "p", 4000, of("g"), Untried)...)),
	Entry("of another namespace has the same name", "a+1(a-1)", "NoReserve:1 Released:1",
		tell().pool("a", 1, 1, 10).full().group("g", 1).waits(Pod("p", 4000, of("g")), Pod("q", 4000, of("g"), InNamespace("other"))).
			elsewhere("other/g", 2, 1)),

	Entry("older than another one is first", "a+2(a-1 a-2)", "NoReserve:2 Released:2",
		tell().pool("a", 1, 3, 10).full().group("x", 2).group("b", 2).waits(Pods(2, "p", 4000, of("b"))...).waits(Pods(2, "q", 4000, of("x"))...)),
	Entry("of a higher priority than another one is first", "a+3(a-1 a-2 a-3)", "NoReserve:2 Released:3",
		tell().pool("a", 1, 3, 10).full().group("g", 2).group("h", 3).waits(Pods(2, "p", 4000, of("g"))...).waits(Pods(3, "q", 4000, of("h"), urgent)...)),
	Entry("that fits beside another one comes with it", "a+3(a-1 a-2 a-3)", "Released:3",
		tell().pool("a", 1, 3, 10).full().group("g", 2).group("h", 1).waits(Pods(2, "p", 4000, of("g"))...).waits(Pods(1, "q", 4000, of("h"))...)),
	Entry("that is too large leaves the reserve to the next one", "a+1(a-1)", "NoReserve:4 Released:1",
		tell().pool("a", 1, 3, 10).full().group("g", 4).group("h", 1).waits(Pods(4, "p", 4000, of("g"))...).waits(Pods(1, "q", 4000, of("h"))...)),
	Entry("comes before a pod of the same priority that starts alone", "a+2(a-1 a-2)", "NoReserve:1 Released:2",
		tell().pool("a", 1, 2, 10).full().group("g", 2).waits(Pod("p", 4000)).waits(Pods(2, "q", 4000, of("g"))...)),
	Entry("comes after a pod of a higher priority", "a+1(a-1)", "NoReserve:2 Released:1",
		tell().pool("a", 1, 2, 10).full().group("g", 2).waits(Pod("p", 4000, urgent)).waits(Pods(2, "q", 4000, of("g"))...)),
	Entry("comes after a pod that has a node, and waits for its volume there", "a+2(a-1 a-2)", "HasRoom:1 Released:2",
		tell().pool("a", 1, 2, 10).group("g", 2).waits(Pods(2, "p", 4000, of("g"))...).awaits("a-0", Pod("q", 3000, Untried))),
	Entry("leaves room to a pod that starts alone", "a+2(a-1 a-2)", "Released:3",
		tell().pool("a", 1, 2, 10).full().group("g", 2).waits(Pod("p", 1000)).waits(Pods(2, "q", 3000, of("g"))...)),

	Entry("gets machines that are dedicated to its owner, and others", "a+3(a-1 a-2 a-3)", "Released:3",
		tell().pool("a", 1, 3, 10, dedicated("default/Job/j", 2)).full().group("g", 3).waits(Pods(3, "p", 4000, of("g"), RunBy("default", "Job", "j"))...)),
	Entry("gets machines for the pods that are not nominated for claimed ones yet", "a+1(a-2)", "Coming:1 Released:1",
		tell().pool("a", 1, 2, 10, dedicated("default", 1), replicas(2), claimedFor("default", "a-1")).full().group("g", 2).
			nominatedFor("a-1", Pod("p", 4000, of("g"))).waits(Pod("q", 4000, of("g")))),
	Entry("gets no machine that is dedicated to the owner of some of its pods", "", "NoReserve:3",
		tell().pool("a", 1, 3, 10, dedicated("default/Job/j", 2)).full().group("g", 3).
			waits(Pods(2, "p", 4000, of("g"), RunBy("default", "Job", "j"))...).waits(Pod("q", 4000, of("g")))),
)

// elsewhere adds a group by its whole name.
func (s *story) elsewhere(name string, least, running int) *story {
	s.Groups[name] = PodGroup{Least: least, Bound: running}
	return s
}

var _ = Describe("A group that waits", func() {
	It("is not doubted while some of its pods have room and others get a machine", func() {
		s := tell().pool("a", 1, 1, 10).group("g", 2).waits(Pods(2, "p", 4000, of("g"))...)
		Expect(New(s.View).Memory).To(BeEmpty())
		s = tell().pool("a", 2, 0, 10, machine("a-1", booting)).unborn("a-1").group("g", 2).waits(Pods(2, "p", 4000, of("g"))...)
		Expect(New(s.View).Memory).To(BeEmpty())
	})

	It("is left to the autoscaler if it waits although there is room for all", func() {
		s := tell().pool("a", 2, 2, 10).group("g", 2).waits(Pods(2, "p", 4000, of("g"))...)
		p := New(s.View)
		Expect(outcomes(p)).To(Equal("HasRoom:2"))
		Expect(p.Memory).To(HaveLen(2))
		s.Memory, s.Now = p.Memory, Noon.Add(DefaultPatience)
		s.full() // meanwhile
		Expect(outcomes(New(s.View))).To(Equal("Doubtful:2"))
		delete(s.Memory, "p-0")
		Expect(outcomes(New(s.View))).To(Equal("Doubtful:2"), "one is enough")
	})

	It("beyond the work of its namespace is left to the autoscaler, and takes nothing from others", func() {
		s := tell().pool("a", 1, 500, 1000).full()
		for i := range 40 {
			name := fmt.Sprint("g", i)
			s.group(name, 10).elsewhere("crowd/"+name, 10, 0)
			s.waits(Pods(5, "p"+name, 3000, of(name), InNamespace("crowd"))...).waits(Pods(5, "q"+name, 3500, of(name), InNamespace("crowd"))...)
		}
		s.group("mine", 2).waits(Pods(2, "mine", 4000, of("mine"))...)
		p := New(s.View)
		Expect(outcomes(p)).To(ContainSubstring("BeyondBounds:"))
		Expect(p.Pods).To(And(HaveKeyWithValue("default/mine-0", Released), HaveKeyWithValue("default/mine-1", Released)))
	})

	It("beyond what one decision looks at takes nothing from others", func() {
		s := tell().pool("a", 1, 4, 10).full()
		for i := range MaxShapes {
			name := fmt.Sprint("g", i)
			s.group(name, 2).waits(Pods(2, "p"+name, 5000, of(name), InNamespace("crowd"))...)
			s.Groups["crowd/"+name] = s.Groups["default/"+name]
		}
		s.group("mine", 2).waits(Pods(2, "mine", 4000, of("mine"))...)
		p := New(s.View)
		Expect(p.Pods).To(And(HaveKeyWithValue("default/mine-0", Released), HaveKeyWithValue("default/mine-1", Released)))
		Expect(outcomes(p)).To(Equal("BeyondBounds:2 NoReserve:510 Released:2"))
	})
})

var _ = DescribeTable("A plan says of a group that the reserve cannot hold",
	func(want string, s *story) {
		texts := []string{}
		for _, shortage := range New(s.View).Shortages {
			texts = append(texts, shortage.Group+": "+shortage.String())
		}
		Expect(strings.Join(texts, "; ")).To(Equal(want))
	},
	Entry("nothing if it can", "", tell().pool("a", 1, 3, 10).full().group("g", 3).waits(Pods(3, "p", 4000, of("g"))...)),
	Entry("nothing if some of its pods start", "", tell().pool("a", 1, 2, 10).full().group("g", 2).waits(Pods(3, "p", 4000, of("g"))...)),
	Entry("nothing if it is left to the autoscaler", "", tell().pool("a", 1, 2, 10).full().waits(Pods(3, "p", 4000, of("g"))...)),
	Entry("which machines it lacks", "default/g: 3 pods must start together, and the reserve lacks 2 machines of MachineDeployment default/a (zone a)",
		tell().pool("a", 1, 1, 10).full().group("g", 3).waits(Pods(3, "p", 4000, of("g"))...)),
	Entry("that max is too small", "default/g: 3 pods must start together, and the reserve lacks 1 machine of MachineDeployment default/a (zone a, max is 3)",
		tell().pool("a", 1, 3, 3).full().group("g", 3).waits(Pods(3, "p", 4000, of("g"))...)),
	Entry("nothing about max if it leaves room for just as many", "default/g: 2 pods must start together, and the reserve lacks 2 machines of MachineDeployment default/a (zone a)",
		tell().pool("a", 1, 0, 3).full().group("g", 2).waits(Pods(2, "p", 4000, of("g"))...)),
	Entry("machines beside what DaemonSets take of them", "default/g: 2 pods must start together, and the reserve lacks 2 machines of MachineDeployment default/a (zone a)",
		tell().pool("a", 1, 0, 10).full().group("g", 2).waits(Pods(2, "p", 2000, of("g"))...).daemon(500)),
	Entry("machines of two pools", "default/g: 2 pods must start together, and the reserve lacks 1 machine of MachineDeployment default/a (zone a) and 1 machine of MachineDeployment default/b (zone b)",
		tell().pool("a", 1, 0, 10).pool("b", 1, 0, 10).full().group("g", 2).waits(Pod("p", 4000, of("g"), InZone("a")), Pod("q", 4000, of("g"), InZone("b")))),
	Entry("machines of one of two pools", "default/g: 2 pods must start together, and the reserve lacks 1 machine of MachineDeployment default/b (zone b)",
		tell().pool("a", 1, 1, 10).pool("b", 1, 0, 10).full().group("g", 2).waits(Pod("p", 4000, of("g"), InZone("a")), Pod("q", 4000, of("g"), InZone("b")))),
	Entry("the devices that its pods request", "default/g: 1 pod must start together, and the reserve lacks 1 machine of MachineDeployment default/a (zone a, example.com/gpu: 8)",
		tell().pool("a", 1, 0, 10, sample(func(n *corev1.Node) { n.Status.Allocatable["example.com/gpu"] = resource.MustParse("8") })).full().group("g", 1).
			waits(Pod("p", 1000, of("g"), func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("8")
			}))),
	Entry("that no machine can hold it", "default/g: 2 pods must start together, and no MachineDeployment with bounds has suitable machines",
		tell().pool("a", 1, 3, 10).full().group("g", 2).waits(Pods(2, "p", 5000, of("g"))...)),
	Entry("what it lacks beside one that is first", "default/h: 2 pods must start together, and the reserve lacks 2 machines of MachineDeployment default/a (zone a)",
		tell().pool("a", 1, 2, 10).full().group("g", 2).group("h", 2).waits(Pods(2, "p", 4000, of("g"))...).waits(Pods(2, "q", 4000, of("h"))...)),
)

var _ = It("A plan says of no more than four groups what they lack", func() {
	s := tell().pool("a", 1, 0, 10).full()
	for i := range 6 {
		name := fmt.Sprint("g", i)
		s.group(name, 1).waits(Pod("p"+name, 4000, of(name)))
	}
	all := New(s.View).Shortages
	Expect(all).To(HaveLen(4))
	Expect(all[0].Group).To(Equal("default/g0"), "the oldest first")
})

var _ = DescribeTable("A PodGroup",
	func(g schedulingv1alpha2.PodGroupSpec, want PodGroup) {
		Expect(PodGroupOf(&schedulingv1alpha2.PodGroup{Spec: g}, want.Bound)).To(Equal(want))
	},
	Entry("whose pods start together", schedulingv1alpha2.PodGroupSpec{SchedulingPolicy: together(3)}, PodGroup{Least: 3, Bound: 1}),
	Entry("whose pods may start alone", schedulingv1alpha2.PodGroupSpec{SchedulingPolicy: schedulingv1alpha2.PodGroupSchedulingPolicy{Basic: &schedulingv1alpha2.BasicSchedulingPolicy{}}}, PodGroup{}),
	Entry("with constraints", schedulingv1alpha2.PodGroupSpec{SchedulingPolicy: together(3), SchedulingConstraints: &schedulingv1alpha2.PodGroupSchedulingConstraints{}}, PodGroup{Least: 3, Unclear: true}),
	Entry("with claims", schedulingv1alpha2.PodGroupSpec{SchedulingPolicy: together(3), ResourceClaims: []schedulingv1alpha2.PodGroupResourceClaim{{}}}, PodGroup{Least: 3, Unclear: true}),
)

func together(n int32) schedulingv1alpha2.PodGroupSchedulingPolicy {
	return schedulingv1alpha2.PodGroupSchedulingPolicy{Gang: &schedulingv1alpha2.GangSchedulingPolicy{MinCount: n}}
}
