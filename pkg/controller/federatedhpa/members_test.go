// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

var _ = Describe("Clusters that come and go", func() {
	It("join, and leave when they are selected no more, and the others take over", func() {
		play(func(f *federation) {
			f.register("c1", "c2")
			f.start()
			f.create(Federated(2, 12))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..6/1..6/-"))
			f.register("c1", "c2", "c3")
			f.settle()
			Expect(f.maxima("shop")).To(Equal("4/4/4"))
			f.change("shop", func(s *Spec) {
				s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"c2"}}}}
			})
			f.settle()
			Expect(f.maxima("shop")).To(Equal("6/-/5"), "what runs in c2 without an autoscaler counts")
			Expect(f.events()).To(ContainElement("Left"))
		}, "c1", "c2", "c3")
	})

	It("keep their share while they are out of reach, and are not touched", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(3, 30))
			f.settle()
			f.clusters[2].Down(true, "federatedhpa")
			time.Sleep(2 * time.Minute)
			Expect(f.state("shop", "c3")).To(Equal("Unreachable NoContact"))
			f.loads("shop", 40, 2, 9)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("17/3/10"))
			Expect(f.condition("shop", "ClustersUnreachable")).To(Equal("True OutOfReach"))
			f.clusters[2].Down(false, "federatedhpa")
			f.settle()
			Expect(f.maxima("shop")).To(Equal("17/3/10"), "it runs 9 and keeps one more")
			Expect(f.condition("shop", "ClustersUnreachable")).To(Equal("False AllReached"))
		}, "c1", "c2", "c3")
	})

	It("lend their share if that is asked for, and get back what they run", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(3, 30, func(s *Spec) {
				s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter, AfterSeconds: ptr.To[int32](600)}
			}))
			f.settle()
			f.loads("shop", 40, 2, 9)
			f.clusters[2].Down(true, "federatedhpa")
			time.Sleep(5 * time.Minute)
			Expect(f.maxima("shop")).To(Equal("17/3/10"))
			f.settle()
			Expect(f.maxima("shop")).To(Equal("27/3/10"))
			Expect(f.condition("shop", "OverCommitted")).To(Equal("True MaximaExceedMaxReplicas"))
			f.clusters[2].Down(false, "federatedhpa")
			f.settle()
			Expect(f.condition("shop", "OverCommitted")).To(Equal("False Within"))
			Expect(f.object("shop").Status.MaxReplicas).To(BeEquivalentTo(30))
		}, "c1", "c2", "c3")
	})

	It("keep lending it, and others keep what they run, if the controller starts anew or gets another access meanwhile", func() {
		play(func(f *federation) {
			p := f.start()
			f.create(Federated(3, 30, func(s *Spec) {
				s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter, AfterSeconds: ptr.To[int32](86400)}
			}))
			f.settle()
			f.loads("shop", 40, 2, 9)
			f.clusters[2].Silence(true, "federatedhpa")
			time.Sleep(25 * time.Hour)
			Expect(f.maxima("shop")).To(Equal("27/3/10"))
			since := f.object("shop").Status.Clusters[2].UnreachableSince
			for _, again := range []func(){func() { p.Crash(); p.Restart() }, f.rotate} {
				again()
				for range 20 {
					time.Sleep(time.Second)
					Expect(f.maxima("shop")).To(Equal("27/3/10"))
				}
				time.Sleep(time.Hour)
				Expect(f.maxima("shop")).To(Equal("27/3/10"))
				Expect(f.object("shop").Status.Clusters[2].UnreachableSince).To(Equal(since))
			}
		}, "c1", "c2", "c3")
	})

	It("keep their share though the registry has lost them, until they are given up", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(3, 30))
			f.settle()
			f.register("c1", "c2")
			f.settle()
			Expect(f.maxima("shop")).To(Equal("10/10/10"))
			Expect(f.state("shop", "c3")).To(Equal("Unreachable NotRegistered"))
			f.change("shop", func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: []string{"c3"}} })
			f.settle()
			Expect(f.maxima("shop")).To(Equal("15/15/10"))
			Expect(f.state("shop", "c3")).To(Equal("absent"))
		}, "c1", "c2", "c3")
	})

	It("join when those before them are full (use case 3), and leave again", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(1, 10, Strict, OnDemand, Prefer("cloud", Tier(1)), func(s *Spec) { Rebalance(s).StartTimeoutSeconds = ptr.To[int32](60) }))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/1..10"))
			f.member("site").set(func(c *cluster) { c.capacity = 4 })
			f.loads("shop", 3, 9)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("5/5"), "what the site cannot run goes to the cloud")
			Expect(f.condition("shop", "MinExceeded")).To(Equal("True MinimaExceedMinReplicas"))
			f.loads("shop", 0, 3)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/1..9"), "the cloud keeps its workload with one replica")
		}, "cloud", "site")
	})
})

var _ = Describe("Deletion", func() {
	It("removes what was made, and waits for clusters out of reach", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 10))
			f.settle()
			f.clusters[1].Down(true, "federatedhpa")
			time.Sleep(time.Minute)
			f.remove("shop")
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/1..5"))
			Expect(f.condition("shop", "Ready")).To(Equal("False Deleting"))
			f.clusters[1].Down(false, "federatedhpa")
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/-"))
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
		}, "c1", "c2")
	})

	It("leaves everything if that is asked for", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 10, func(s *Spec) { s.DeletionPolicy = v1alpha1.Orphan }))
			f.settle()
			f.clusters[1].Down(true, "federatedhpa")
			f.remove("shop")
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..5/1..5"))
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
		}, "c1", "c2")
	})
})
