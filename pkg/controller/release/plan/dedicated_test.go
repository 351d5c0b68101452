// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

// dedicated has so many machines of a pool be kept for the pods of an owner.
func dedicated(owner v1alpha1.Owner, n int32) func(*Pool) {
	return func(p *Pool) {
		p.Reserve.Dedicated = append(p.Reserve.Dedicated, v1alpha1.Dedication{Owner: owner, Machines: n})
	}
}

var (
	ofWeb   = RunBy("shop", "Deployment", "web")
	ofOther = RunBy("shop", "Deployment", "other")
)

// claims are raises with the machines that they claim, as in "a+2(a-1 a-3) of these a-1".
func claims(p Plan) string {
	var words []string
	for _, r := range p.Raises {
		text := Raises(Plan{Raises: []Raise{r}})
		if len(r.Claimed) > 0 {
			text += " of these " + strings.Join(r.Claimed, " ")
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}

var _ = DescribeTable("A plan with dedicated machines (9)",
	func(wantRaises, wantOutcomes string, s *story) {
		p := New(s.View)
		Expect(claims(p)).To(Equal(wantRaises))
		Expect(outcomes(p)).To(Equal(wantOutcomes))
	},
	Entry("strangers get none", "", "NoReserve:3", tell().pool("a", 1, 2, 10, dedicated("shop", 2)).full().waits(Pods(3, "p", 4000)...)),
	Entry("strangers get the others", "a+1(a-3)", "NoReserve:2 Released:1", tell().pool("a", 1, 3, 10, dedicated("shop", 2)).full().waits(Pods(3, "p", 4000)...)),
	Entry("strangers leave them room below max", "a+1(a-3)", "NoReserve:1 Released:1", tell().pool("a", 1, 4, 4, dedicated("shop", 2)).full().waits(Pods(2, "p", 4000)...)),
	Entry("its owner gets one", "a+1(a-1) of these a-1", "Released:1", tell().pool("a", 1, 2, 10, dedicated("shop", 2)).full().waits(Pod("p", 4000, ofWeb))),
	Entry("a workload gets one, and another of its namespace does not", "a+1(a-1) of these a-1", "NoReserve:1 Released:1",
		tell().pool("a", 1, 2, 10, dedicated("shop/Deployment/web", 2)).full().waits(Pod("p", 4000, ofWeb), Pod("q", 4000, ofOther))),
	Entry("a StatefulSet gets one", "a+1(a-1) of these a-1", "Released:1",
		tell().pool("a", 1, 2, 10, dedicated("shop/StatefulSet/db", 2)).full().waits(Pod("p", 4000, RunBy("shop", "StatefulSet", "db")))),
	Entry("a Deployment of the name of a StatefulSet gets none", "", "NoReserve:1",
		tell().pool("a", 1, 2, 10, dedicated("shop/StatefulSet/web", 2)).full().waits(Pod("p", 4000, ofWeb))),
	Entry("nor one of the name of a CronJob", "", "NoReserve:1",
		tell().pool("a", 1, 2, 10, dedicated("shop/CronJob/web", 2)).full().waits(Pod("p", 4000, ofWeb))),
	Entry("one without a workload, like a pod of it, gets none", "", "NoReserve:1",
		tell().pool("a", 1, 2, 10, dedicated("shop/Deployment/web", 2)).full().waits(Pod("p", 4000, ofWeb, func(p *corev1.Pod) { p.OwnerReferences = nil }))),
	Entry("one of a ReplicaSet with such a name gets none", "", "NoReserve:1",
		tell().pool("a", 1, 2, 10, dedicated("shop/Deployment/web", 2)).full().waits(Pod("p", 4000, ofWeb, func(p *corev1.Pod) { delete(p.Labels, "pod-template-hash") }))),
	Entry("each of several owners gets its own", "a+2(a-1 a-2) of these a-1 a-2", "NoReserve:1 Released:2",
		tell().pool("a", 1, 2, 10, dedicated("ci", 1), dedicated("shop", 1)).full().waits(Pod("p", 4000), Pod("q", 4000, ofWeb), Pod("r", 4000, RunBy("ci", "Job", "build")))),
	Entry("a workload takes precedence over its namespace", "a+2(a-2 a-1) of these a-2 a-1", "NoReserve:1 Released:2",
		tell().pool("a", 1, 2, 10, dedicated("shop", 1), dedicated("shop/Deployment/web", 1)).full().waits(Pods(3, "p", 4000, ofWeb)...)),
	Entry("its owner gets the others as well", "a+3(a-1 a-2 a-3) of these a-1 a-2", "NoReserve:1 Released:3",
		tell().pool("a", 1, 3, 10, dedicated("shop", 2)).full().waits(Pods(4, "p", 4000, ofWeb)...)),
	Entry("both in one write", "a+2(a-1 a-2) of these a-1", "Released:2", tell().pool("a", 1, 2, 10, dedicated("shop", 1)).full().waits(Pod("p", 4000, ofWeb), Pod("q", 4000))),
	Entry("its owner within max", "a+1(a-1) of these a-1", "NoReserve:1 Released:1", tell().pool("a", 1, 2, 2, dedicated("shop", 1)).full().waits(Pod("p", 4000, ofWeb), Pod("q", 4000))),
	Entry("the room below max of one that is claimed is left for the next", "a+1(a-1) of these a-1", "NoReserve:1 Released:1",
		tell().pool("a", 1, 2, 3, dedicated("shop", 1)).full().waits(Pod("p", 4000, ofWeb), Pod("q", 4000))),
	Entry("its owner up to max", "a+1(a-1) of these a-1", "NoReserve:1 Released:1", tell().pool("a", 1, 2, 2, dedicated("shop", 2)).full().waits(Pods(2, "p", 4000, ofWeb)...)),
	Entry("its owner gets none at max", "", "NoReserve:1", tell().pool("a", 2, 1, 2, dedicated("shop", 1)).full().waits(Pod("p", 4000, ofWeb))),
	Entry("strangers get none if all the room below max is dedicated", "", "NoReserve:1", tell().pool("a", 1, 2, 2, dedicated("shop", 1)).full().waits(Pod("p", 4000))),
	Entry("its owner in two pools", "a+1(a-1) of these a-1; b+1(b-1) of these b-1", "NoReserve:1 Released:2",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1)).pool("b", 1, 1, 10, dedicated("shop", 1)).full().waits(Pods(3, "p", 4000, ofWeb)...)),
	Entry("room on serving machines is used first", "", "HasRoom:1", tell().pool("a", 1, 2, 10, dedicated("shop", 2)).waits(Pod("p", 1000, ofWeb))),
	Entry("what is left on one that is claimed is for all", "a+1(a-1) of these a-1", "Released:2",
		tell().pool("a", 1, 2, 10, dedicated("shop", 2)).full().waits(Pod("p", 2000, ofWeb), Pod("q", 2000))),
	Entry("one that is claimed is coming, and counts as room", "", "Coming:1",
		tell().pool("a", 1, 2, 10, dedicated("shop", 2), replicas(2), machine("a-1", func(m *reserve.Machine) { m.Claimed = true })).full().waits(Pod("p", 4000, ofWeb))),
	Entry("one whose Node is not ready is not claimed", "a+1(a-2) of these a-2", "Released:1", func() *story {
		s := tell().pool("a", 1, 2, 10, dedicated("shop", 2)).full().waits(Pod("p", 4000, ofWeb))
		s.Nodes[1].Object.Status.Conditions = nil
		return s
	}()),
)

var _ = It("nominates the pods of an owner for the machines that are claimed for them, and no other pods (9)", func() {
	p := New(tell().pool("a", 1, 3, 10, dedicated("shop", 2)).full().waits(Pods(2, "p", 4000, ofWeb)...).waits(Pod("q", 4000)).View)
	Expect(claims(p)).To(Equal("a+3(a-1 a-2 a-3) of these a-1 a-2"))
	Expect(nominations(p.Raises[0].Nominations)).To(Equal("shop/p-0 a-1, shop/p-1 a-2"))
})

// ownerName is the name of a namespace that machines are dedicated to.
func ownerName(i int) string { return fmt.Sprintf("team-%02d", i) }

var _ = DescribeTable("A pod of the last of many owners, by name, who own a machine each (7)",
	func(owners int, want string, change ...func(*story)) {
		var each []func(*Pool)
		for i := range owners {
			each = append(each, dedicated(v1alpha1.Owner(ownerName(i)), 1))
		}
		s := tell().pool("a", 1, owners+1, 2*owners, each...)
		for _, f := range change {
			f(s)
		}
		s.full().waits(Pod("p", 4000, RunBy(ownerName(owners-1), "Deployment", "web")))
		Expect(claims(New(s.View))).To(Equal(want))
	},
	Entry("gets that of its owner if they are 64", 64, "a+1(a-64) of these a-64"),
	Entry("gets one that is for all if they are 65", 65, "a+1(a-66)"),
	Entry("gets that of its owner if 64 of 65 machines are ready", 65, "a+1(a-65) of these a-65", func(s *story) { s.Nodes[1].Object.Status.Conditions = nil }),
	Entry("gets that of its owner if another one owns machines in two pools", 64, "a+1(a-64) of these a-64",
		func(s *story) { s.pool("b", 1, 1, 10, dedicated(v1alpha1.Owner(ownerName(0)), 1)) }),
)

var _ = DescribeTable("An owner whose pods take long to compare with nodes (7)",
	func(want string, owners ...func(*Pool)) {
		const serving = 700
		ports := func(p *corev1.Pod) { // each is compared with each on a node
			for i := range int32(fit.MaxHostPorts) {
				p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: 1 + i})
			}
		}
		s := tell().pool("a", serving, 3, serving+10, owners...)
		for i := range serving {
			s.runs(fmt.Sprint("a-", i), Pod(fmt.Sprint("r-", i), 1000, ports))
		}
		Expect(claims(New(s.waits(Pod("p", 1000, ofWeb, ports), Pod("q", 4000, ofWeb)).View))).To(Equal(want))
	},
	Entry("may use all the work of a decision if it is the only one", "a+2(a-700 a-701) of these a-700 a-701", dedicated("shop", 2)),
	Entry("may use half of it beside another one", "", dedicated("shop", 2), dedicated("ci", 1)),
)

var _ = It("gives no dedicated machine to pods of others, whatever waits (9)", func() {
	namespaces, kinds := []string{"shop", "ci", "other"}, []string{"Deployment", "Job"}
	owners := []v1alpha1.Owner{"shop", "ci", "ci,shop", "shop/Deployment/web", "ci/Job/web,other"}
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		s := tell()
		for _, name := range []string{"a", "b"}[:rapid.IntRange(1, 2).Draw(t, "pools")] {
			spare, limit := rapid.IntRange(0, 4).Draw(t, "spare"), rapid.IntRange(1, 7).Draw(t, "max")
			s.pool(name, 1, spare, limit, func(p *Pool) {
				room := max(0, limit-1)
				for _, owner := range rapid.SliceOfNDistinct(rapid.SampledFrom(owners), 0, 3, func(o v1alpha1.Owner) v1alpha1.Owner { return o }).Draw(t, "owners") {
					n := rapid.IntRange(0, room).Draw(t, "machines")
					dedicated(owner, int32(n))(p)
					room -= n
				}
				for i := range p.Reserve.Machines {
					m := &p.Reserve.Machines[i]
					m.Owner = rapid.SampledFrom(append(owners, "", "", "")).Draw(t, "written")
					if rapid.IntRange(0, 4).Draw(t, "boots") == 0 {
						m.Phase = mcm.MachinePending
					}
				}
			})
		}
		s.full()
		for i := range rapid.IntRange(0, 8).Draw(t, "waiting") {
			s.waits(Pod(fmt.Sprint("p-", i), rapid.SampledFrom([]int64{1000, 2000, 4000}).Draw(t, "cpu"),
				RunBy(rapid.SampledFrom(namespaces).Draw(t, "namespace"), rapid.SampledFrom(kinds).Draw(t, "kind"), rapid.SampledFrom([]string{"web", "api"}).Draw(t, "name"))))
		}
		p := New(s.View)
		for _, r := range p.Raises {
			owned := reserve.Dedicate(r.Pool.Reserve.Machines, r.Pool.Reserve.Dedicated)
			taken := 0
			for i, m := range r.Pool.Reserve.Machines {
				if owned[i] == "" || !slices.Contains(r.Machines, m.Name) {
					continue
				}
				taken++
				if !slices.Contains(r.Claimed, m.Name) {
					t.Fatalf("%s is dedicated to %s, and released for anybody: %+v", m.Name, owned[i], r)
				}
				if !slices.ContainsFunc(s.Waiting, func(w *fit.Pod) bool {
					return owned[i].Owns(w.Object) && slices.Contains(r.For, w.Name())
				}) {
					t.Fatalf("%s is dedicated to %s, and released for %v", m.Name, owned[i], r.For)
				}
			}
			if taken != len(r.Claimed) {
				t.Fatalf("%v are claimed, %d are dedicated", r.Claimed, taken)
			}
			if r.Pool.Replicas+r.By > r.Pool.Max {
				t.Fatalf("above max: %+v", r)
			}
		}
	})
})

// claimedFor has an owner's pods have claimed a machine that is dedicated to the owner.
func claimedFor(owner v1alpha1.Owner, name string) func(*Pool) {
	return machine(name, func(m *reserve.Machine) { m.Owner, m.Claimed = owner, true })
}

// nominatedFor adds a pod that waits, and is nominated for a node that cannot take it now.
func (s *story) nominatedFor(node string, p *corev1.Pod) *story {
	if s.Nominated == nil {
		s.Nominated = map[types.UID]string{}
	}
	s.Nominated[p.UID] = node
	return s.waits(p)
}

// nominations are in the form "shop/p a-1".
func nominations(all []Nomination) string {
	var words []string
	for _, n := range all {
		words = append(words, n.Pod.Name()+" "+n.Node)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

var _ = DescribeTable("Claimed machines that have not opened yet (9)",
	func(wantRaises, wantNominations, wantPods string, s *story) {
		p := New(s.View)
		Expect(claims(p)).To(Equal(wantRaises))
		Expect(nominations(p.Nominations)).To(Equal(wantNominations))
		var pods []string
		for name, outcome := range p.Pods {
			pods = append(pods, name+" "+string(outcome))
		}
		slices.Sort(pods)
		Expect(strings.Join(pods, ", ")).To(Equal(wantPods))
	},
	Entry("are for their owner, whose pods are nominated again, and not for pods that have waited longer", "", "shop/p a-1", "default/q NoReserve, shop/p Coming",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1), replicas(2), claimedFor("shop", "a-1")).full().waits(Pod("q", 4000), Pod("p", 4000, ofWeb))),
	Entry("keep their pods where these are nominated", "", "", "default/q NoReserve, shop/p Coming",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1), replicas(2), claimedFor("shop", "a-1")).full().waits(Pod("q", 4000)).nominatedFor("a-1", Pod("p", 4000, ofWeb))),
	Entry("take a pod of their owner each", "", "shop/p a-1", "shop/p Coming, shop/q Coming",
		tell().pool("a", 1, 2, 10, dedicated("shop", 2), replicas(3), claimedFor("shop", "a-1"), claimedFor("shop", "a-2")).full().
			waits(Pod("p", 4000, ofWeb)).nominatedFor("a-2", Pod("q", 4000, ofWeb))),
	Entry("are the only ones that their pods are nominated for", "", "shop/p a-1", "shop/p Coming, shop/q Coming",
		tell().pool("a", 1, 2, 10, dedicated("shop", 1), replicas(3), claimedFor("shop", "a-1")).full().waits(Pod("p", 4000, ofWeb), Pod("q", 4000, ofWeb))),
	Entry("are not enough for more pods", "a+1(a-2) of these a-2", "", "shop/p Coming, shop/q Released",
		tell().pool("a", 1, 2, 10, dedicated("shop", 2), replicas(2), claimedFor("shop", "a-1")).full().
			nominatedFor("a-1", Pod("p", 4000, ofWeb)).waits(Pod("q", 4000, ofWeb))),
	Entry("have room left for other pods", "", "", "default/q Coming, default/r NoReserve, shop/p Coming",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1), replicas(2), claimedFor("shop", "a-1")).full().
			waits(Pod("q", 1000), Pod("r", 2000)).nominatedFor("a-1", Pod("p", 2500, ofWeb))),
	Entry("keep no pod of others that is nominated", "", "shop/p a-1", "default/q NoReserve, shop/p Coming",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1), replicas(2), claimedFor("shop", "a-1")).full().
			nominatedFor("a-1", Pod("q", 4000)).waits(Pod("p", 4000, ofWeb))),
	Entry("of a workload are not nominated for another workload of its namespace", "", "", "shop/p Coming",
		tell().pool("a", 1, 2, 10, dedicated("shop/Deployment/web", 1), dedicated("shop", 1), replicas(3), claimedFor("shop/Deployment/web", "a-1"), claimedFor("shop", "a-2")).full().
			nominatedFor("a-2", Pod("p", 4000, ofOther))),
	Entry("of a workload that no pod of it needs are for all", "", "", "shop/p Coming",
		tell().pool("a", 1, 1, 10, dedicated("shop/Deployment/web", 1), replicas(2), claimedFor("shop/Deployment/web", "a-1")).full().waits(Pod("p", 4000, ofOther))),
	Entry("are no longer claimed if replicas were lowered: they take no pod", "a+1(a-1) of these a-1", "", "shop/p Released",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1), machine("a-1", func(m *reserve.Machine) { m.Owner = "shop" })).full().nominatedFor("a-1", Pod("p", 4000, ofWeb))),
	Entry("do not count if they are leaving", "", "", "shop/p NoReserve",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1), replicas(2), claimedFor("shop", "a-1"), machine("a-1", leaves), func(p *Pool) { p.Sample = nil }).full().nominatedFor("a-1", Pod("p", 4000, ofWeb))),
)

// withClaims returns a MachineDeployment with claims, such as "3:a,b".
func withClaims(uid, claims string) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	if claims != "" {
		d.Annotations = map[string]string{v1alpha1.ClaimedAnnotation: claims}
	}
	return d
}

// claimedOf returns which machines count as claimed. Those in reserve have capital letters, and those
// that are claimed by what the view shows an exclamation mark.
func claimedOf(c Claimed, d *v1alpha1.MachineDeployment, replicas int, machines ...string) string {
	v := reserve.View{Replicas: replicas}
	for _, m := range machines {
		name, shown := strings.CutSuffix(m, "!")
		v.Machines = append(v.Machines, reserve.Machine{Name: strings.ToLower(name), Reserve: name != strings.ToLower(name), Claimed: shown})
	}
	c.Complete(d, v)
	var all []string
	for _, m := range v.Machines {
		if m.Claimed {
			all = append(all, m.Name)
		}
	}
	return strings.Join(all, " ")
}

var _ = Describe("A claim whose record is gone", func() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var c Claimed
	d := withClaims("1", "")
	BeforeEach(func() {
		c = Claimed{}
		c.Record(withClaims("1", "3:a,b"), now)
	})

	It("is remembered while its machine is shown in reserve", func() {
		c.Record(d, now)
		Expect(claimedOf(c, d, 3, "A", "B", "C")).To(Equal("a b"))
		Expect(claimedOf(c, d, 4, "A", "C", "B")).To(Equal("a b"))
	})

	It("is void while there are fewer replicas than it was made for", func() {
		Expect(claimedOf(c, d, 2, "A", "B", "C!")).To(Equal("c"))
		Expect(claimedOf(c, d, 2, "A!", "B")).To(Equal("a"), "which another record claims for that many")
		Expect(claimedOf(c, d, 3, "A", "B", "C")).To(Equal("a b"))
	})

	It("ends when its machine has left the reserve, also if that enters it again", func() {
		Expect(claimedOf(c, d, 3, "a", "B")).To(Equal("b"))
		Expect(claimedOf(c, d, 3, "A", "B")).To(Equal("b"))
	})

	It("does not concern machines of other MachineDeployments", func() {
		Expect(claimedOf(c, withClaims("2", ""), 3, "A", "B")).To(BeEmpty())
		Expect(c).To(HaveLen(1), "nothing is remembered of these")
	})

	It("is remembered for a minute", func() {
		c.Record(d, now.Add(time.Minute))
		Expect(claimedOf(c, d, 3, "A")).To(Equal("a"))
		c.Record(withClaims("2", "1:x"), now.Add(time.Minute+1))
		Expect(claimedOf(c, d, 3, "A")).To(BeEmpty())
		Expect(claimedOf(c, withClaims("2", ""), 1, "X")).To(Equal("x"))
	})

	It("is replaced by a later record", func() {
		c.Record(withClaims("1", "5:b"), now.Add(50*time.Second))
		c.Record(d, now.Add(100*time.Second))
		Expect(claimedOf(c, d, 4, "A", "B")).To(BeEmpty())
		Expect(claimedOf(c, d, 5, "A", "B")).To(Equal("b"))
	})
})

// nominatedFor returns a pod that is nominated for a node.
func nominatedFor(node, name string, milli int64, change ...func(*corev1.Pod)) *corev1.Pod {
	p := Pod(name, milli, change...)
	p.Status.NominatedNodeName = node
	return p
}

// worth sets the priority of a pod.
func worth(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = ptr.To(n) }
}

// neverPreempting keeps the scheduler from removing other pods for this one.
func neverPreempting(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever) }

// createdAt sets since when a pod has existed.
func createdAt(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(at) }
}

// besideIt has a pod run only where one with a label runs.
func besideIt(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		}}}
	}
}

// inThreeZones has a pod and those like it spread evenly over at least three zones.
func inThreeZones(p *corev1.Pod) {
	p.Labels = map[string]string{"app": "even"}
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, MaxSkew: 1, MinDomains: ptr.To[int32](3), LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
	}}
}

// avoidingTeam keeps a pod away from all pods in namespaces of a team. Which these are is unknown.
func avoidingTeam(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}},
	}}}
}

// listening has a pod use a port of its node.
func listening(p *corev1.Pod) {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
}

// these are pods on a node with four CPUs, or nominated for nodes.
func these(pods ...*corev1.Pod) []*corev1.Pod { return pods }

var _ = DescribeTable("A pod that is nominated for a node with four CPUs",
	func(want bool, pod *corev1.Pod, running, nominated []*corev1.Pod) {
		read := func(p *corev1.Pod) *fit.Pod { return fit.NewPod(p, nothing) }
		Expect(IsCrowdedOut(pod, NodeIn("n", "z"), running, nominated, read)).To(Equal(want))
	},
	Entry("has its place where nothing runs", false, nominatedFor("n", "p", 4000), nil, nil),
	Entry("has its place beside what leaves it room", false, nominatedFor("n", "p", 1000), these(Pod("q", 3000)), nil),
	Entry("is crowded out by what runs there", true, nominatedFor("n", "p", 1000), these(Pod("q", 4000)), nil),
	Entry("is crowded out by two that run there", true, nominatedFor("n", "p", 1000), these(Pod("q", 2000), Pod("r", 2000)), nil),
	Entry("is crowded out by what is more important", true, nominatedFor("n", "p", 1000), these(Pod("q", 4000, worth(1))), nil),
	Entry("is not crowded out by what is less important, since preemption removes it", false, nominatedFor("n", "p", 1000), these(Pod("q", 4000, worth(-1))), nil),
	Entry("is crowded out by what is less important if it never preempts others", true, nominatedFor("n", "p", 1000, neverPreempting), these(Pod("q", 4000, worth(-1))), nil),
	Entry("has its place beside what is less important and leaves it room if it never preempts others", false, nominatedFor("n", "p", 1000, neverPreempting),
		these(Pod("q", 3000, worth(-1))), nil),
	Entry("is not crowded out by what has finished", false, nominatedFor("n", "p", 1000),
		these(Pod("q", 4000, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })), nil),
	Entry("is not crowded out by what is being deleted", false, nominatedFor("n", "p", 1000),
		these(Pod("q", 4000, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: Noon} })), nil),
	Entry("is not crowded out if it would not fit the empty node either", false, nominatedFor("n", "p", 5000), these(Pod("q", 4000)), nil),
	Entry("is crowded out by what runs there, also if the node is the wrong one anyway", true, nominatedFor("n", "p", 1000, InZone("elsewhere")), these(Pod("q", 4000)), nil),
	Entry("has its place beside the one that it has to run with", false, nominatedFor("n", "p", 1000, besideIt("q")), these(Pod("q", 1000)), nil),

	Entry("has its place beside one of those that it is spread with, since only other nodes show whether the zones are even", false,
		nominatedFor("n", "p", 1000, inThreeZones), these(Pod("q", 1000, inThreeZones)), nil),
	Entry("has its place beside one that may or may not keep it away", false, nominatedFor("n", "p", 1000), these(Pod("q", 1000, avoidingTeam)), nil),
	Entry("is crowded out where one runs that keeps it away", true, nominatedFor("n", "p", 1000, Apart), these(Pod("p-1", 1000, Apart)), nil),
	Entry("is crowded out where another has its port", true, nominatedFor("n", "p", 1000, listening), these(Pod("q", 1000, listening)), nil),

	Entry("is crowded out by a more important one that is nominated, too", true, nominatedFor("n", "p", 1000), nil, these(nominatedFor("n", "q", 4000, worth(1)))),
	Entry("is crowded out by an older one that is nominated, too", true, nominatedFor("n", "p", 1000, createdAt(Noon)), nil,
		these(nominatedFor("n", "q", 4000, createdAt(Noon.Add(-time.Second))))),
	Entry("is not crowded out by a younger one that is nominated, too", false, nominatedFor("n", "p", 1000, createdAt(Noon)), nil,
		these(nominatedFor("n", "q", 4000, createdAt(Noon.Add(time.Second))))),
	Entry("is not crowded out by one that is nominated for another node", false, nominatedFor("n", "p", 1000), nil, these(nominatedFor("m", "q", 4000, worth(1)))),
	Entry("is not crowded out by its own nomination", false, nominatedFor("n", "p", 3000), nil, these(nominatedFor("n", "p", 3000))),
	Entry("is not crowded out by one that has no place there itself", false, nominatedFor("n", "p", 2000), these(Pod("r", 2000)), these(nominatedFor("n", "q", 3000, worth(1)))),
	Entry("is crowded out by the most important one that is nominated, which takes the room of the next", true, nominatedFor("n", "p", 2000), nil,
		these(nominatedFor("n", "q", 2000, worth(1)), nominatedFor("n", "r", 3000, worth(2)))),
)
