// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// dedicated has so many machines of a pool be kept for the pods of an owner.
func dedicated(owner v1alpha1.Owner, n int32) func(*Pool) {
	return func(p *Pool) {
		p.Reserve.Dedicated = append(p.Reserve.Dedicated, v1alpha1.Dedication{Owner: owner, Machines: n})
	}
}

// runBy has a workload run a pod: a ReplicaSet of it, if it is a Deployment.
func runBy(namespace, kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Namespace, p.UID = namespace, types.UID(namespace+"/"+p.Name)
		owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(namespace + name), Controller: ptr.To(true)}
		if kind == "Deployment" {
			owner.Kind, owner.Name = "ReplicaSet", name+"-abc"
			p.Labels = map[string]string{"pod-template-hash": "abc", "app": name}
		}
		p.OwnerReferences = []metav1.OwnerReference{owner}
	}
}

var (
	ofWeb   = runBy("shop", "Deployment", "web")
	ofOther = runBy("shop", "Deployment", "other")
)

// claims are raises with the machines that they claim, as in "a+2(a-1 a-3) of these a-1".
func claims(p Plan) string {
	var words []string
	for _, r := range p.Raises {
		text := raises(Plan{Raises: []Raise{r}})
		if len(r.Claimed) > 0 {
			text += " of these " + strings.Join(r.Claimed, " ")
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}

var _ = DescribeTable("A plan with dedicated machines (9)",
	func(wantRaises, wantOutcomes string, s *story) {
		p := NewPlan(s.View)
		Expect(claims(p)).To(Equal(wantRaises))
		Expect(outcomes(p)).To(Equal(wantOutcomes))
	},
	Entry("strangers get none", "", "NoReserve:3", tell().pool("a", 1, 2, 10, dedicated("shop", 2)).full().waits(pods(3, "p", 4000)...)),
	Entry("strangers get the others", "a+1(a-3)", "NoReserve:2 Released:1", tell().pool("a", 1, 3, 10, dedicated("shop", 2)).full().waits(pods(3, "p", 4000)...)),
	Entry("strangers leave them room below max", "a+1(a-3)", "NoReserve:1 Released:1", tell().pool("a", 1, 4, 4, dedicated("shop", 2)).full().waits(pods(2, "p", 4000)...)),
	Entry("its owner gets one", "a+1(a-1) of these a-1", "Released:1", tell().pool("a", 1, 2, 10, dedicated("shop", 2)).full().waits(pod("p", 4000, ofWeb))),
	Entry("a workload gets one, and another of its namespace does not", "a+1(a-1) of these a-1", "NoReserve:1 Released:1",
		tell().pool("a", 1, 2, 10, dedicated("shop/Deployment/web", 2)).full().waits(pod("p", 4000, ofWeb), pod("q", 4000, ofOther))),
	Entry("a StatefulSet gets one", "a+1(a-1) of these a-1", "Released:1",
		tell().pool("a", 1, 2, 10, dedicated("shop/StatefulSet/db", 2)).full().waits(pod("p", 4000, runBy("shop", "StatefulSet", "db")))),
	Entry("one without a workload, like a pod of it, gets none", "", "NoReserve:1",
		tell().pool("a", 1, 2, 10, dedicated("shop/Deployment/web", 2)).full().waits(pod("p", 4000, ofWeb, func(p *corev1.Pod) { p.OwnerReferences = nil }))),
	Entry("one of a ReplicaSet with such a name gets none", "", "NoReserve:1",
		tell().pool("a", 1, 2, 10, dedicated("shop/Deployment/web", 2)).full().waits(pod("p", 4000, ofWeb, func(p *corev1.Pod) { delete(p.Labels, "pod-template-hash") }))),
	Entry("each of several owners gets its own", "a+2(a-1 a-2) of these a-1 a-2", "NoReserve:1 Released:2",
		tell().pool("a", 1, 2, 10, dedicated("ci", 1), dedicated("shop", 1)).full().waits(pod("p", 4000), pod("q", 4000, ofWeb), pod("r", 4000, runBy("ci", "Job", "build")))),
	Entry("a workload comes before its namespace", "a+2(a-2 a-1) of these a-2 a-1", "NoReserve:1 Released:2",
		tell().pool("a", 1, 2, 10, dedicated("shop", 1), dedicated("shop/Deployment/web", 1)).full().waits(pods(3, "p", 4000, ofWeb)...)),
	Entry("its owner gets the others as well", "a+3(a-1 a-2 a-3) of these a-1 a-2", "NoReserve:1 Released:3",
		tell().pool("a", 1, 3, 10, dedicated("shop", 2)).full().waits(pods(4, "p", 4000, ofWeb)...)),
	Entry("both in one write", "a+2(a-1 a-2) of these a-1", "Released:2", tell().pool("a", 1, 2, 10, dedicated("shop", 1)).full().waits(pod("p", 4000, ofWeb), pod("q", 4000))),
	Entry("its owner within max", "a+1(a-1) of these a-1", "NoReserve:1 Released:1", tell().pool("a", 1, 2, 2, dedicated("shop", 1)).full().waits(pod("p", 4000, ofWeb), pod("q", 4000))),
	Entry("the room below max of one that is claimed is left for the next", "a+1(a-1) of these a-1", "NoReserve:1 Released:1",
		tell().pool("a", 1, 2, 3, dedicated("shop", 1)).full().waits(pod("p", 4000, ofWeb), pod("q", 4000))),
	Entry("room that serves comes first", "", "HasRoom:1", tell().pool("a", 1, 2, 10, dedicated("shop", 2)).waits(pod("p", 1000, ofWeb))),
	Entry("what is left on one that is claimed is for all", "a+1(a-1) of these a-1", "Released:2",
		tell().pool("a", 1, 2, 10, dedicated("shop", 2)).full().waits(pod("p", 2000, ofWeb), pod("q", 2000))),
	Entry("one that is claimed is coming, and counts as room", "", "Coming:1",
		tell().pool("a", 1, 2, 10, dedicated("shop", 2), replicas(2), machine("a-1", func(m *reserve.Machine) { m.Claimed = true })).full().waits(pod("p", 4000, ofWeb))),
	Entry("one whose Node is not ready is not claimed", "a+1(a-2) of these a-2", "Released:1", func() *story {
		s := tell().pool("a", 1, 2, 10, dedicated("shop", 2)).full().waits(pod("p", 4000, ofWeb))
		s.Nodes[1].Object.Status.Conditions = nil
		return s
	}()),
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
			s.waits(pod(fmt.Sprint("p-", i), rapid.SampledFrom([]int64{1000, 2000, 4000}).Draw(t, "cpu"),
				runBy(rapid.SampledFrom(namespaces).Draw(t, "namespace"), rapid.SampledFrom(kinds).Draw(t, "kind"), rapid.SampledFrom([]string{"web", "api"}).Draw(t, "name"))))
		}
		p := NewPlan(s.View)
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

var _ = Describe("The controller with dedicated machines", func() {
	const forWeb = "default/Deployment/web=4"
	web := runBy(ns, "Deployment", "web")
	grown := func(c *cluster, change ...func(*v1alpha1.MachineDeployment)) {
		c.grow("a", 1, 6, "1:12", append(change, func(d *v1alpha1.MachineDeployment) {
			d.Annotations[v1alpha1.DedicatedAnnotation] = forWeb
		})...)
	}
	// released is a cluster of such a pool whose release controller has started.
	released := func(body func(c *cluster)) {
		play(func(c *cluster) {
			grown(c)
			c.Start("release", controller(usual))
			c.settle()
			body(c)
		})
	}
	// placed is how many of whose pods have a node.
	placed := func(c *cluster, prefix string) (n int) {
		for _, p := range c.pods() {
			if strings.HasPrefix(p.Name, prefix) && p.Spec.NodeName != "" {
				n++
			}
		}
		return n
	}

	It("gives strangers none of them, however many wait, and its owner all at once, though strangers have waited longer", func() { // law 9
		released(func(c *cluster) {
			c.create(fresh(20, "stranger", 4000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=8"), "12 without the 4 that are dedicated")
			Expect(placed(c, "stranger")).To(Equal(7))

			c.create(fresh(4, "web", 4000, web)...)
			time.Sleep(2 * time.Second)
			Expect(placed(c, "web")).To(Equal(4))
			c.settle()
			Expect(c.replicas()).To(Equal("a=12"))
			Expect(placed(c, "stranger")).To(Equal(7))
		})
	})

	It("counts a nomination only while its node can take the pod", func() { // law 9
		released(func(c *cluster) {
			for _, node := range []string{"gone", c.machines()[6].Name} {
				c.create(pod("web-"+node, 4000, web, func(p *corev1.Pod) { p.Status.NominatedNodeName = node }))
			}
			c.settle()
			Expect(placed(c, "web")).To(Equal(2))
			Expect(c.replicas()).To(Equal("a=3"))
		})
	})

	It("raises nothing for a pod that could not be nominated, until it can", func() { // law 9
		released(func(c *cluster) {
			fails := true
			c.OnWrite(func(w sim.Write) error {
				if w.Resource == "pods" && w.Subresource == "status" && w.User == "release" && fails {
					return apierrors.NewInternalError(errors.New("for now"))
				}
				return nil
			})
			c.create(fresh(1, "web", 4000, web)...)
			time.Sleep(10 * time.Second)
			Expect(c.replicas()).To(Equal("a=1"))
			c.set(func() { fails = false })
			c.settle()
			Expect(placed(c, "web")).To(Equal(1))
		})
	})

	// refuse has the API server refuse nominations while it is to, and returns how many it has refused.
	refuse := func(c *cluster, refuses func(refused int) bool) *int {
		refused := 0
		c.OnWrite(func(w sim.Write) error {
			if w.Resource == "pods" && w.Subresource == "status" && w.User == "release" && refuses(refused) {
				refused++
				return apierrors.NewForbidden(schema.GroupResource{Resource: w.Resource}, w.Name, errors.New("the authorizer has no answer yet"))
			}
			return nil
		})
		return &refused
	}

	It("gives strangers none of them where an API server that has just started refuses nominations", func() { // law 9
		released(func(c *cluster) {
			c.create(fresh(20, "stranger", 4000)...)
			c.settle()
			refused := refuse(c, func(refused int) bool { return refused < 3 })
			for i := range 4 {
				c.create(fresh(1, fmt.Sprintf("web%d", i), 4000, web)...)
				c.settle()
			}
			Expect(*refused).To(Equal(3))
			Expect(placed(c, "web")).To(Equal(4))
			Expect(placed(c, "stranger")).To(Equal(7))
		})
	})

	It("claims none twice where the end of a claim is seen before the machine leaves the reserve", func() { // law 9
		released(func(c *cluster) {
			c.create(fresh(20, "stranger", 4000)...)
			c.settle()
			for _, late := range []string{"pods", "nodes", "machines"} {
				c.Lag(late, func() time.Duration { return 300 * time.Millisecond }, "release")
			}
			for i := range 2 {
				c.create(fresh(1, fmt.Sprintf("web%d", i), 4000, web)...)
				time.Sleep(100 * time.Millisecond)
				c.create(fresh(1, fmt.Sprintf("web%d", 2+i), 4000, web)...)
				time.Sleep(240 * time.Millisecond)
				Expect(c.deployment("a").Annotations).To(HaveKey(v1alpha1.ClaimedAnnotation))
				c.patch("a", `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.ClaimedAnnotation)
				c.settle()
			}
			Expect(placed(c, "web")).To(Equal(4))
			Expect(placed(c, "stranger")).To(Equal(7))
		})
	})

	It("releases them also without the right to nominate: the first after some seconds, and others at once", func() { // law 9
		released(func(c *cluster) {
			lacking := true
			refused := refuse(c, func(int) bool { return lacking })
			c.create(fresh(1, "web0", 4000, web)...)
			time.Sleep(5 * time.Second)
			Expect(c.replicas()).To(Equal("a=1"))
			time.Sleep(5 * time.Second)
			Expect(placed(c, "web")).To(Equal(1))
			Expect(*refused).To(BeNumerically("<", 10))
			c.create(fresh(1, "web1", 4000, web)...)
			time.Sleep(time.Second)
			Expect(placed(c, "web")).To(Equal(2))

			c.set(func() { lacking = false })
			c.create(fresh(1, "web2", 4000, web)...)
			c.settle()
			c.set(func() { lacking = true })
			c.create(fresh(1, "web3", 4000, web)...)
			time.Sleep(time.Second)
			Expect(placed(c, "web")).To(Equal(3), "the right was granted meanwhile")
			c.settle()
			Expect(placed(c, "web")).To(Equal(4))
		})
	})

	It("leaves strangers none in a storm, and its owner none short", func() { // law 9
		storm.Seeds(suite, everyAnswer, func(seed uint64) {
			c := inhabit(storm.NewApart(sim.Options{Seed: seed, Resources: served}))
			defer c.End()
			c.Require("additive raise", "inclusive raise", "change to additive", "change to inclusive")
			random := rand.New(rand.NewPCG(seed, 3))
			c.Latency(time.Millisecond)
			within, counts := c.audited(12), accountsOf(seed)
			grown(c, counted(counts.first))
			p := c.Start("release", controller(usual))
			c.settle()
			c.Storm(random, p)
			for i := range 4 {
				if i == 1 {
					c.account(counts.then)
				}
				c.create(fresh(1+random.IntN(9), fmt.Sprintf("stranger%d", i), 4000)...)
				time.Sleep(time.Duration(random.IntN(200)) * time.Second)
				if random.IntN(2) == 0 {
					p.CrashFor(time.Duration(random.IntN(5000)) * time.Millisecond)
				}
				c.create(fresh(1, fmt.Sprintf("web%d", i), 4000, web)...)
				time.Sleep(time.Duration(random.IntN(20)) * time.Second)
			}
			c.Calm()
			within.rest()
			c.expectReserve(12, counts.then)
			Expect(placed(c, "web")).To(Equal(4), c.workload())
			Expect(placed(c, "stranger")).To(BeNumerically("<=", 7), c.workload())
			before := len(c.Writes())
			time.Sleep(2 * time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
		})
	})

	It("ends the same, wherever it is killed", func() {
		for _, seed := range []uint64{2, 3} {
			counts := accountsOf(seed)
			By(fmt.Sprint(counts))
			scenario := storm.Scenario{
				Options: sim.Options{Seed: 2, Resources: served}, Apart: true,
				Story: func(w *storm.World) {
					c := inhabit(w)
					c.Latency(time.Millisecond)
					within := c.audited(12)
					grown(c, counted(counts.first))
					w.Start("release", controller(usual))
					c.settle()
					c.create(fresh(9, "stranger", 4000)...)
					time.Sleep(time.Second)
					c.account(counts.then)
					c.create(fresh(4, "web", 4000, web)...)
					within.rest()
					c.expectReserve(12, counts.then)
				},
				End: func(w *storm.World) any {
					c := &cluster{World: w}
					return fmt.Sprint(c.workload(), placed(c, "web"), placed(c, "stranger"))
				},
			}
			Expect(storm.CrashPoints(suite, scenario, "release")).To(Succeed())
		}
	})
})
