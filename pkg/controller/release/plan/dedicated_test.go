// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
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
