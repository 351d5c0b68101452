// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

var _ = DescribeTable("A plan",
	expectPlan,
	// Law 1: as many machines as it takes.
	Entry("no pod waits", "", "", tell().pool("a", 1, 2, 10).full()),
	Entry("one pod", "a+1(a-1)", "Released:1", tell().pool("a", 1, 2, 10).full().waits(Pod("p", 1000))),
	Entry("pods that fit one machine", "a+1(a-1)", "Released:4", tell().pool("a", 1, 2, 10).full().waits(Pods(4, "p", 1000)...)),
	Entry("pods for two", "a+2(a-1 a-2)", "Released:5", tell().pool("a", 1, 2, 10).full().waits(Pods(5, "p", 1000)...)),
	Entry("the oldest of the reserve, of what is ready", "a+1(a-2)", "Released:1",
		tell().pool("a", 1, 3, 10, machine("a-1", booting)).full().waits(Pod("p", 1000))),
	Entry("machines of the current revision first", "a+1(a-2)", "Released:1",
		tell().pool("a", 1, 3, 10, machine("a-1", func(m *reserve.Machine) { m.Set = "old" })).full().waits(Pod("p", 1000))),
	Entry("pods of two zones", "a+1(a-1) b+1(b-1)", "Released:2",
		tell().pool("a", 1, 1, 10).pool("b", 1, 1, 10).full().waits(Pod("p", 1000, InZone("a")), Pod("q", 1000, InZone("b")))),
	Entry("one zone, where one machine does", "b+1(b-1)", "Released:2",
		tell().pool("a", 1, 2, 10).pool("b", 1, 1, 10).full().waits(Pod("p", 1000), Pod("q", 1000, InZone("b")))),
	Entry("one machine each", "a+2(a-1 a-2)", "Released:2", tell().pool("a", 1, 3, 10).full().waits(Pods(2, "p", 100, Apart)...)),

	// Law 1: room that there is.
	Entry("room on what serves", "", "HasRoom:1", tell().pool("a", 1, 2, 10).waits(Pod("p", 1000))),
	Entry("room for some of them", "a+1(a-1)", "HasRoom:4 Released:1", tell().pool("a", 1, 2, 10).waits(Pods(5, "p", 1000)...)),
	Entry("room on a node of no pool", "", "HasRoom:1", func() *story {
		s := tell().pool("a", 1, 2, 10).full().waits(Pod("p", 1000))
		s.Nodes = append(s.Nodes, Node{Object: NodeIn("other", "x")})
		return s
	}()),
	Entry("room that was made: a machine is about to be released", "", "Coming:1", tell().pool("a", 1, 2, 10, replicas(2)).full().waits(Pod("p", 1000))),
	Entry("room that was made, and more is needed", "a+1(a-2)", "Coming:4 Released:1", tell().pool("a", 1, 2, 10, replicas(2)).full().waits(Pods(5, "p", 1000)...)),
	Entry("room that was made: the Node has not lost its taint yet", "", "HasRoom:1", func() *story {
		s := tell().pool("a", 2, 1, 10)
		Held(s.Nodes[1].Object)
		return s.runs("a-0", Pod("f", 4000)).waits(Pod("p", 1000))
	}()),
	Entry("room that boots for replicas", "", "Coming:1",
		tell().pool("a", 2, 0, 10, machine("a-1", booting)).unborn("a-1").full().waits(Pod("p", 1000))),
	Entry("room that boots: its Node is ready, and tainted for a moment longer", "", "Coming:1", func() *story {
		s := tell().pool("a", 2, 1, 10).runs("a-0", Pod("f", 4000)).waits(Pod("p", 1000))
		s.Nodes[1].Object.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		return s
	}()),
	Entry("room on the machine that replaces one that leaves", "", "Coming:1", tell().pool("a", 2, 0, 10, machine("a-1", leaves)).full().waits(Pod("p", 1000))),
	Entry("a machine of the reserve that has just become ready", "a+1(a-1)", "Released:1", func() *story {
		s := tell().pool("a", 1, 1, 10).full().waits(Pod("p", 1000))
		s.Nodes[1].Object.Status.Conditions[0].LastTransitionTime = metav1.NewTime(Noon)
		return s
	}()),
	Entry("room that boots, and a reserve that is swapped for it", "", "Coming:1",
		tell().pool("a", 2, 1, 10, machine("a-1", booting)).unborn("a-1").full().waits(Pod("p", 4000))),
	Entry("room that boots is swapped, and the next is released", "a+1(a-3)", "Coming:1 Released:1",
		tell().pool("a", 2, 2, 10, machine("a-1", booting)).unborn("a-1").full().waits(Pods(2, "p", 4000)...)),
	Entry("room that boots in another pool", "", "Coming:1",
		tell().pool("a", 2, 0, 10, machine("a-1", booting)).unborn("a-1").pool("b", 1, 2, 10).full().waits(Pod("p", 1000))),
	Entry("no room on what does not come", "b+1(b-1)", "Released:1",
		tell().pool("a", 2, 0, 10, machine("a-1", failing)).unborn("a-1").pool("b", 1, 2, 10).full().waits(Pod("p", 1000))),
	Entry("no room on what does not come, in reserve, and none on what leaves beside it", "b+1(b-1)", "Released:1",
		tell().pool("a", 1, 2, 10, replicas(2), machine("a-1", neverMade), machine("a-2", leaves), applied(0)).unborn("a-1").pool("b", 1, 2, 10).full().waits(Pod("p", 1000))),
	Entry("no room on what does not come, in reserve, where replicas ask for it", "b+1(b-1)", "Released:1",
		tell().pool("a", 1, 1, 10, replicas(2), machine("a-1", neverMade), applied(0)).unborn("a-1").pool("b", 1, 2, 10).full().waits(Pod("p", 1000))),
	Entry("no room on what is sick, in reserve, where replicas ask for it", "b+1(b-1)", "Released:1",
		tell().pool("a", 1, 1, 10, replicas(2), machine("a-1", unknown), applied(0)).pool("b", 1, 2, 10).full().waits(Pod("p", 1000))),
	Entry("room that is yet to boot beside what does not come", "", "Coming:1",
		tell().pool("a", 1, 1, 10, replicas(2), machine("a-1", neverMade), applied(1)).unborn("a-1").pool("b", 1, 2, 10).full().waits(Pod("p", 1000))),
	Entry("room that boots in reserve, where replicas ask for it", "", "Coming:1",
		tell().pool("a", 1, 2, 10, replicas(2), machine("a-1", neverMade), machine("a-2", unborn), applied(1)).unborn("a-1", "a-2").pool("b", 1, 2, 10).full().waits(Pod("p", 1000))),
	Entry("a machine that is sick is being covered by one of the reserve", "", "Coming:1",
		tell().pool("a", 2, 2, 10, machine("a-1", unknown)).full().waits(Pod("p", 1000))),
	Entry("no room on what boots and is not known", "b+1(b-1)", "Released:1",
		tell().pool("a", 2, 0, 10, machine("a-1", booting), func(p *Pool) { p.Sample = nil }).unborn("a-1").pool("b", 1, 2, 10).full().waits(Pod("p", 1000))),
	Entry("no room on what leaves", "a+1(a-2)", "Released:1",
		tell().pool("a", 2, 2, 10, machine("a-1", leaves), replicas(1)).runs("a-0", Pod("f", 4000)).waits(Pod("p", 1000))),
	Entry("a DaemonSet will take its part", "a+2(a-1 a-2)", "Released:4", tell().pool("a", 1, 2, 10).full().waits(Pods(4, "p", 1000)...).daemon(500)),
	Entry("of two DaemonSets only one has room", "a+2(a-1 a-2)", "Released:2", tell().pool("a", 1, 2, 10).full().waits(Pods(2, "p", 1000)...).daemon(2500).daemon(2500)),
	Entry("a DaemonSet has taken its part", "a+1(a-1)", "Released:3", tell().pool("a", 1, 1, 10).full().waits(Pods(3, "p", 1100)...).daemon(500).
		runs("a-1", Pod("d", 500, func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{UID: "daemon"}} }))),

	Entry("a DaemonSet will take its part beside a pod of another namespace that names it as its owner", "a+2(a-1 a-2)", "Released:3",
		tell().pool("a", 1, 2, 10).full().waits(Pods(3, "p", 1100)...).daemon(500).
			runs("a-1", Pod("d", 500, InNamespace("other"), func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{UID: "daemon"}} }))),
	Entry("a DaemonSet has no room beside what runs there, and takes no part", "a+1(a-1)", "Released:1",
		tell().pool("a", 1, 1, 10).full().runs("a-1", Pod("t", 2000, tolerant)).waits(Pod("p", 1000)).daemon(2500)),
	Entry("room that serves before room that boots", "", "HasRoom:1", tell().pool("a", 1, 0, 10, replicas(2)).waits(Pod("p", 1000))),
	Entry("room that is made, on a machine whose Node is not ready for the moment", "", "Coming:1", func() *story {
		s := tell().pool("a", 1, 1, 10, replicas(2)).full().waits(Pod("p", 1000))
		s.Nodes[1].Object.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		return s
	}()),
	Entry("no room on a machine that is sick, where nothing stands in for it", "", "NoReserve:1", tell().pool("a", 2, 0, 10, machine("a-1", unknown)).full().waits(Pod("p", 1000))),
	Entry("room that is to boot, in the zone of the pool", "", "Coming:1 NoReserve:1",
		tell().pool("a", 1, 0, 10, replicas(2)).full().waits(Pod("p", 1000, InZone("a")), Pod("q", 1000, InZone("b")))),
	Entry("room that is to boot, one machine each", "", "Coming:2 NoReserve:1", tell().pool("a", 1, 0, 10, replicas(3)).full().waits(Pods(3, "p", 100, Apart)...)),
	Entry("no room on what is to boot with a taint", "b+1(b-1)", "Released:1",
		tell().pool("a", 1, 0, 10, replicas(2), sample(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoSchedule}}
		})).pool("b", 1, 1, 10).full().waits(Pod("p", 1000))),
	Entry("no room on what is to boot without the label of a host name, if that is required", "", "NoReserve:1",
		tell().pool("a", 1, 0, 10, replicas(2), sample(func(n *corev1.Node) { delete(n.Labels, corev1.LabelHostname) })).full().waits(Pod("p", 1000, onHost))),

	// Law 2: bounds.
	Entry("at max", "", "NoReserve:1", tell().pool("a", 2, 2, 2).full().waits(Pod("p", 1000))),
	Entry("up to max", "a+1(a-2)", "NoReserve:1 Released:1", tell().pool("a", 2, 2, 3).full().waits(Pods(2, "p", 4000)...)),
	// One of the reserve is about to serve in place of one that boots.
	Entry("up to max, where more could be released than is left below it", "a+1(a-2)", "Coming:1 NoReserve:1 Released:1",
		tell().pool("a", 2, 3, 3, machine("a-1", booting), machine("a-2", first), machine("a-4", first)).full().waits(Pods(3, "p", 4000)...)),
	Entry("above max already", "", "NoReserve:1", tell().pool("a", 4, 1, 3).full().waits(Pod("p", 1000))),
	Entry("no reserve", "", "NoReserve:1", tell().pool("a", 1, 0, 10).full().waits(Pod("p", 1000))),
	Entry("a reserve that boots", "", "NoReserve:1", tell().pool("a", 1, 1, 10, machine("a-1", booting)).full().waits(Pod("p", 1000))),
	Entry("a reserve without its Node", "", "NoReserve:1", tell().pool("a", 1, 1, 10).unborn("a-1").full().waits(Pod("p", 1000))),
	Entry("a reserve whose Node is not ready", "", "NoReserve:1", func() *story {
		s := tell().pool("a", 1, 1, 10).full().waits(Pod("p", 1000))
		s.Nodes[1].Object.Status.Conditions = nil
		return s
	}()),
	Entry("a reserve of two, where the Node of the first to be released is not ready", "", "NoReserve:1", func() *story {
		s := tell().pool("a", 1, 2, 10).full().waits(Pod("p", 1000))
		s.Nodes[1].Object.Status.Conditions = nil
		return s
	}()),
	Entry("no pool", "", "NoReserve:1", tell().waits(Pod("p", 1000))),

	// Law 4: pods that are no reason for a raise.
	Entry("not tried by the scheduler, beside one that it has rejected", "a+1(a-1)", "Released:1",
		tell().pool("a", 1, 1, 10).full().waits(Pod("p-0", 1000), Pod("p-1", 1000, func(p *corev1.Pod) { p.Status.Conditions[0].Reason = corev1.PodReasonSchedulerError }))),
	Entry("gated", "", "", tell().pool("a", 1, 1, 10).full().waits(Pod("p", 1000, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }))),
	Entry("preempting", "", "", tell().pool("a", 1, 1, 10).full().waits(Pod("p", 1000, func(p *corev1.Pod) { p.Status.NominatedNodeName = "a-0" }))),
	Entry("leaving", "", "", tell().pool("a", 1, 1, 10).full().waits(Pod("p", 1000, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }))),
	Entry("failed", "", "", tell().pool("a", 1, 1, 10).full().waits(Pod("p", 1000, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }))),
	Entry("of a scheduler with rules of its own", "", "", tell().pool("a", 1, 1, 10).full().waits(Pod("p", 1000, func(p *corev1.Pod) { p.Spec.SchedulerName = "mine" }))),
	Entry("of low priority", "", "", tell().pool("a", 1, 1, 10).full().waits(Pod("p", 1000, func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](-11) }))),
	Entry("of a DaemonSet", "", "", tell().pool("a", 1, 1, 10).full().waits(Pod("p", 1000, func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: ptr.To(true)}}
	}))),
	Entry("of a scheduler that failed for another reason", "", "", tell().pool("a", 1, 1, 10).full().waits(Pod("p", 1000, func(p *corev1.Pod) { p.Status.Conditions[0].Reason = corev1.PodReasonSchedulerError }))),
	Entry("at home in the reserve", "", "HasRoom:1", tell().pool("a", 1, 1, 10).full().waits(Pod("p", 1000, tolerant))),
	Entry("at home in the reserve, which is full", "", "NoReserve:1", tell().pool("a", 1, 1, 10).full().runs("a-1", Pod("t", 4000, tolerant)).waits(Pod("p", 1000, tolerant))),
	Entry("too large", "", "NoReserve:1", tell().pool("a", 1, 2, 10).full().waits(Pod("p", 5000))),
	Entry("too large, beside one that is not", "a+1(a-1)", "NoReserve:1 Released:1", tell().pool("a", 1, 2, 10).full().waits(Pod("p", 5000), Pod("q", 1000))),
	Entry("of another zone", "", "NoReserve:1", tell().pool("a", 1, 2, 10).full().waits(Pod("p", 1000, InZone("b")))),
	Entry("not to be told", "", "Unclear:1", tell().pool("a", 1, 2, 10).full().waits(Pod("p", 1000, claimsDevice))),

	// Law 4: pods that the scheduler has not tried yet.
	Entry("none has been tried", "", "", tell().pool("a", 1, 2, 10).full().waits(Pods(4, "p", 1000, Untried)...)),
	Entry("an identical one has been rejected", "a+2(a-1 a-2)", "Released:7", tell().pool("a", 1, 2, 10).full().waits(Pod("p-9", 1000)).waits(Pods(6, "p", 1000, Untried)...)),
	Entry("a different one has been rejected", "a+1(a-1)", "Released:1", tell().pool("a", 1, 2, 10).full().waits(Pod("p", 1000)).waits(Pods(6, "q", 1000, Untried)...)),
	Entry("its node has been chosen, and its volume is being created there", "a+1(a-1)", "HasRoom:1 Released:1",
		tell().pool("a", 1, 1, 10).waits(Pod("p", 4000)).awaits("a-0", Pod("q", 3000, Untried))),
)

// sample changes what machines of a pool that do not exist yet will look like.
func sample(change func(*corev1.Node)) func(*Pool) {
	return func(p *Pool) { change(p.Sample) }
}

// onHost has a pod run only on nodes that have a host name.
func onHost(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists}}}},
	}}}
}

// daemon adds a DaemonSet that takes a part of every machine.
func (s *story) daemon(milli int64) *story {
	p := Pod("daemon", milli)
	p.OwnerReferences = []metav1.OwnerReference{{UID: "daemon"}}
	s.Daemons = append(s.Daemons, Daemon{Owner: "daemon", Pod: fit.NewPod(p, nil)})
	return s
}

var _ = It("changes nothing of what it is given", func() {
	given := func() *story {
		return tell().pool("a", 2, 4, 10, machine("a-1", leaves), dedicated("shop", 1), replicas(1)).full().
			waits(Pod("p", 1000), Pod("q", 3000, ofWeb), Pod("r", 1000, InZone("b")), Pod("s", 1000, claimsDevice)).daemon(500)
	}
	s := given()
	Expect(Raises(New(s.View))).NotTo(BeEmpty())
	want := given()
	Expect(s.Nodes).To(HaveLen(len(want.Nodes)))
	for i, n := range s.Nodes {
		Expect(n.Object).To(Equal(want.Nodes[i].Object))
		Expect(n.Pods).To(HaveLen(len(want.Nodes[i].Pods)))
	}
	Expect(s.Pools).To(Equal(want.Pools))
	Expect(s.Memory).To(Equal(want.Memory))
	for i, p := range s.Waiting {
		Expect(p.Object).To(Equal(want.Waiting[i].Object))
	}
})

var _ = It("names the pods of a raise in order", func() {
	p := New(tell().pool("a", 1, 1, 10).full().waits(Pod("r", 100), Pod("p", 200), Pod("s", 2000), Pod("q", 1000), Pod("t", 300)).View)
	Expect(p.Raises[0].For).To(Equal([]string{"default/p", "default/q", "default/r", "default/s", "default/t"}))
})

var _ = Describe("A plan over time", func() {
	// again is the same story a while later, with what the plan remembers.
	again := func(s *story, p Plan, d time.Duration) {
		s.Now, s.Memory = s.Now.Add(d), p.Memory
	}

	It("leaves a pod alone that keeps waiting beside room", func() { // law 5
		s := tell().pool("a", 1, 2, 10).waits(Pod("p", 1000))
		p := New(s.View)
		Expect(outcomes(p)).To(Equal("HasRoom:1"))
		again(s, p, 29*time.Second)
		p = New(s.View)
		Expect(outcomes(p)).To(Equal("HasRoom:1"))
		again(s, p, time.Second)
		s.full()
		p = New(s.View)
		Expect(outcomes(p)).To(Equal("Doubtful:1"), "the room is gone, and it did not use it")
		again(s, p, 24*time.Hour)
		Expect(Raises(New(s.View))).To(BeEmpty())

		By("serving other pods as before")
		s.waits(Pod("q", 1000))
		p = New(s.View)
		Expect(outcomes(p)).To(Equal("Doubtful:1 Released:1"))
	})

	It("no longer doubts a pod for which a node has been chosen, and keeps its room there while its volume is being created", func() {
		s := tell().pool("a", 1, 1, 10).waits(Pod("p", 4000)).awaits("a-0", Pod("q", 3000))
		s.Memory = Memory{"q": s.Now.Add(-time.Hour)}
		p := New(s.View)
		Expect(outcomes(p)).To(Equal("HasRoom:1 Released:1"))
		Expect(p.Memory).To(BeEmpty())
	})

	It("does not doubt a pod whose room others took", func() {
		s := tell().pool("a", 1, 2, 10).waits(Pod("p", 1000))
		p := New(s.View)
		again(s, p, 10*time.Second)
		s.full()
		p = New(s.View)
		Expect(Raises(p)).To(Equal("a+1(a-1)"))
		Expect(p.Memory).To(BeEmpty())
	})

	It("does not count the time before the scheduler has looked", func() {
		s := tell().pool("a", 1, 2, 10).waits(Pod("p-0", 1000), Pod("p-1", 1000, Untried))
		Expect(New(s.View).Memory).To(HaveKey(types.UID("p-0")))
		Expect(New(s.View).Memory).NotTo(HaveKey(types.UID("p-1")))
	})

	It("remembers no pod that waits for a machine on its way", func() {
		s := tell().pool("a", 1, 2, 10, replicas(2)).full().waits(Pod("p", 1000))
		Expect(New(s.View).Memory).To(BeEmpty())
	})
})

var _ = It("bounds the room that is still to come by the pods that could use it", func() {
	s := tell().pool("a", 1, 0, 2_000_000_000, replicas(2_000_000_000)).full().waits(Pods(3, "p", 1000, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
	})...)
	Expect(outcomes(New(s.View))).To(Equal("Coming:3"))

	By("doing so for pods that do not exist yet, too")
	s = tell().pool("a", 1, 0, 2_000_000_000, replicas(2_000_000_000)).full().waits(Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(3, "w")
	var p Plan
	Expect(allocated(func() { p = New(s.View) })).To(BeNumerically("<", 1<<20))
	Expect(outcomes(p)).To(Equal("Coming:1"))
})

// uneven is a pool with six, one and three machines in three zones, and three in reserve in each.
func uneven(change ...func(*Pool)) *story {
	return tell().pool("a", 6, 3, 20, change...).pool("b", 1, 3, 20).pool("c", 3, 3, 20).full()
}

func inWorkerPool(name string) func(*Pool) { return func(p *Pool) { p.WorkerPool = name } }

func (s *story) notEven() *story {
	s.Settings.Even = false
	return s
}

var _ = DescribeTable("Of similar zones, the smallest releases first",
	expectPlan,
	Entry("one machine", "b+1(b-1)", "Released:1", uneven().waits(Pod("p", 4000))),
	Entry("until they are as even as they can be", "b+3(b-1 b-2 b-3) c+1(c-3)", "Released:4", uneven().waits(Pods(4, "p", 4000)...)),
	Entry("though another has more in reserve", "b+1(b-1)", "Released:1",
		tell().pool("a", 6, 9, 20).pool("b", 1, 1, 20).full().waits(Pod("p", 4000))),
	Entry("of equal ones, that which has more in reserve", "b+1(b-3)", "Released:1",
		tell().pool("a", 3, 1, 20).pool("b", 3, 2, 20).full().waits(Pod("p", 4000))),
	Entry("by replicas, not by the machines that serve", "b+1(b-3)", "Coming:3 Released:1",
		tell().pool("a", 1, 5, 20, replicas(4)).pool("b", 3, 2, 20).full().waits(Pods(4, "p", 4000)...)),
	Entry("within max", "b+1(b-1) c+2(c-3 c-4)", "Released:3",
		tell().pool("a", 6, 3, 20).pool("b", 1, 3, 2).pool("c", 3, 3, 20).full().waits(Pods(3, "p", 4000)...)),
	Entry("which does not matter to pods of a zone", "a+1(a-6)", "Released:1", uneven().waits(Pod("p", 4000, InZone("a")))),
	Entry("nor to pods of which another holds more", "a+1(a-6)", "Released:2", uneven().waits(Pod("p", 2000), Pod("q", 2000, InZone("a")))),
	Entry("unless this is switched off", "a+1(a-6)", "Released:1", uneven().notEven().waits(Pod("p", 4000))),
	Entry("but not of a pool with another name than that which has most in reserve", "c+1(c-3)", "Released:1",
		tell().pool("a", 6, 4, 20).pool("b", 1, 3, 20, inWorkerPool("x")).pool("c", 3, 3, 20).full().waits(Pod("p", 4000))),
	Entry("and not of pools with different names", "a+1(a-6)", "Released:1",
		tell().pool("a", 6, 3, 20, inWorkerPool("x")).pool("b", 1, 3, 20, inWorkerPool("y")).full().waits(Pod("p", 4000))),
	Entry("and not of another namespace", "a+1(a-6)", "Released:1", func() *story {
		s := tell().pool("a", 6, 3, 20).pool("b", 1, 3, 20).full().waits(Pod("p", 4000))
		s.Pools[1].Key = "other/b"
		return s
	}()),
	Entry("and not where its machines are dedicated by a taint", "a+1(a-6)", "Released:1",
		tell().pool("a", 6, 3, 20).pool("b", 1, 3, 20, func(p *Pool) {
			p.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoExecute}}
		}).full().waits(Pod("p", 4000))),
	Entry("and not where machines differ", "a+1(a-6)", "Released:1",
		tell().pool("a", 6, 3, 20).pool("b", 1, 3, 20, func(p *Pool) {
			p.Sample.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}
		}).full().waits(Pod("p", 4000))),
	Entry("and not where it is unknown what machines are like", "a+1(a-6)", "Released:1",
		tell().pool("a", 6, 3, 20).pool("b", 1, 3, 20, func(p *Pool) { p.Sample = nil }).full().waits(Pod("p", 4000))),
	Entry("also of machines that are dedicated to an owner, which count when the others are released", "a+1(a-3) b+1(b-1)", "Released:2",
		tell().pool("a", 2, 3, 20, dedicated("shop", 1)).pool("b", 1, 3, 20, dedicated("shop", 1)).full().waits(Pod("p", 4000, ofWeb), Pod("q", 4000))),
)

var _ = DescribeTable("A Node that has just become ready", expectPlan,
	Entry("has a taint for a moment longer: room that boots", "", "Coming:1", starting(59*time.Second, untainted)),
	Entry("keeps such a taint: no room", "a+1(a-2)", "Released:1", starting(time.Minute, untainted)),
	Entry("keeps such a taint, and whose clock is ahead: no room", "a+1(a-2)", "Released:1", starting(-time.Hour, untainted)),
	Entry("has the taint of all: no room", "a+1(a-2)", "Released:1", starting(59*time.Second, startupTaint)),
	Entry("has a taint, if it is not known what others have: no room", "a+1(a-2)", "Released:1",
		starting(59*time.Second, untainted, func(p *Pool) { p.Sample = nil })),
	Entry("is better avoided: room once", "a+1(a-2)", "HasRoom:4 Released:1", func() *story {
		s := starting(time.Second, untainted).waits(Pods(4, "q", 1000)...)
		s.Nodes[1].Object.Spec.Taints[0].Effect = corev1.TaintEffectPreferNoSchedule
		return s
	}()),
	Entry("has the taint of all: room once for pods that tolerate it", "a+1(a-2)", "HasRoom:4 Released:2", func() *story {
		s := starting(time.Second, startupTaint)
		for i := range 5 {
			p := Pod(fmt.Sprint("q-", i), 1000)
			p.Spec.Tolerations = []corev1.Toleration{{Key: "starting", Operator: corev1.TolerationOpExists}}
			s.waits(p)
		}
		return s
	}()),
	Entry("is cordoned: no room", "a+1(a-2)", "Released:1", func() *story {
		s := starting(59*time.Second, untainted)
		s.Nodes[1].Object.Spec.Unschedulable = true
		return s
	}()),
)

var _ = It("decides again once a taint of a Node that has just become ready counts as one that stays", func() {
	Expect(New(starting(59*time.Second, untainted).View).Again).To(Equal(time.Second))
	Expect(New(starting(time.Minute, untainted).View).Again).To(BeZero())
})

func untainted(*corev1.Node) {}

// startupTaint is one that the kubelet registers a Node with.
func startupTaint(n *corev1.Node) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "starting", Effect: corev1.TaintEffectNoSchedule})
}

// starting has a pod wait beside a machine that has room, has been ready for so long, and has a startup taint. The sample changes.
func starting(ready time.Duration, change func(*corev1.Node), more ...func(*Pool)) *story {
	s := tell().pool("a", 2, 1, 10, append([]func(*Pool){sample(change)}, more...)...).runs("a-0", Pod("f", 4000)).waits(Pod("p", 1000))
	n := s.Nodes[1].Object
	startupTaint(n)
	n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(Noon.Add(-ready))
	return s
}
