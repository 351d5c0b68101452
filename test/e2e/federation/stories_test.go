// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

var _ = Describe("Use case 1: a workload in three clusters, each scaled by what it measures", func() {
	It("gets maxima where the load is, within a cooldown and two looks of the members' own autoscalers", func(ctx context.Context) {
		s := newShop(ctx, "demand", 3, 30, atLeastOne)
		Eventually(s.bounds(ctx)).Should(Equal("1..10/1..10/1..10"))
		s.load(2, 2, 2)
		Eventually(s.replicas(ctx)).Should(Equal("2/2/2"), "where c1 grows first, the others need no room beyond their load")
		s.load(25, 2, 2)
		begun := time.Now()
		Eventually(s.maxima(ctx), cooldown*time.Second+2*hpaPeriod+slow).Should(Equal("24/3/3"))
		AddReportEntry("from load to maxima", time.Since(begun))
		Eventually(s.replicas(ctx)).Should(Equal("24/2/2"))
		Eventually(s.condition(ctx, "Limited")).Should(Equal("True TooFewReplicas"))
		By("moving the load")
		s.load(2, 2, 20)
		Eventually(s.replicas(ctx)).Should(Equal("2/2/20"))
		Eventually(s.condition(ctx, "Limited")).Should(Equal("False Enough"))
		Eventually(s.condition(ctx, "Balanced")).Should(Equal("True AtGoal"))
		s.guard.held()
	})

	It("gets maxima where the load is, and leaves nothing behind", Label("short"), func(ctx context.Context) {
		s := newShop(ctx, "short", 3, 30, atLeastOne, func(s *spec) { s.Rebalance.CooldownSeconds = ptr.To[int32](1) })
		Eventually(s.bounds(ctx)).Should(Equal("1..10/1..10/1..10"))
		s.load(2, 2, 2)
		Eventually(s.replicas(ctx)).Should(Equal("2/2/2"), "where c1 grows first, the others need no room beyond their load")
		s.load(25, 2, 2)
		Eventually(s.bounds(ctx)).Should(Equal("1..24/1..3/1..3"))
		Eventually(s.replicas(ctx)).Should(Equal("24/2/2"))
		s.guard.held()
		s.remove(ctx)
		Expect(s.bounds(ctx)()).To(Equal("-/-/-"))
		Expect(s.replicas(ctx)()).To(Equal("24/2/2"), "the workloads are not its own")
	})

	It("gets minima where the load is, if that is requested", Label("long"), func(ctx context.Context) {
		s := newShop(ctx, "minima", 9, 30, atLeastOne, func(s *spec) { s.Rebalance.Minima = true })
		s.load(3, 3, 3)
		Eventually(s.bounds(ctx)).Should(Equal("3..10/3..10/3..10"))
		s.load(8, 1, 3)
		begun := time.Now()
		Eventually(s.bounds(ctx), cooldown*time.Second+2*hpaPeriod+slow).Should(HavePrefix("5..10/1..10/3"))
		AddReportEntry("from load to minima", time.Since(begun))
		Eventually(s.moves).WithContext(ctx).Should(ConsistOf("c1: from 3..10 to 5..10", "c2: from 3..10 to 1..10"), "in one go: a second would be a cooldown later")
		Eventually(s.replicas(ctx)).Should(Equal("8/1/3"))
	})
})

var _ = Describe("Use case 2: autoscaling continues", func() {
	It("in a cluster whose link is cut, and in the others, and the sum holds", Label("long"), func(ctx context.Context) {
		s := newShop(ctx, "cut", 3, 30, atLeastOne)
		Eventually(s.bounds(ctx)).Should(Equal("1..10/1..10/1..10"))
		members[2].link.Cut()
		DeferCleanup(members[2].link.Mend)
		s.load(25, 2, 9)
		Eventually(s.replicas(ctx)).Should(Equal("17/2/9"), "the cut one scales by itself, and its share is not lent")
		Eventually(s.state(ctx, "c3")).Should(Equal("Unreachable NoContact"))
		Expect(s.maxima(ctx)()).To(Equal("17/3/10"))
		members[2].link.Mend()
		s.load(25, 2, 1)
		Eventually(s.replicas(ctx)).Should(Equal("25/2/1"))
		s.guard.held()
	})

	It("while an API server hangs", Label("long"), func(ctx context.Context) {
		s := newShop(ctx, "hang", 3, 30, atLeastOne)
		Eventually(s.bounds(ctx)).Should(Equal("1..10/1..10/1..10"))
		server := members[2].Process(localcluster.APIServer)
		Expect(server.Pause()).To(Succeed())
		members[2].paused = true
		resume := func() {
			Expect(server.Resume()).To(Succeed())
			members[2].paused = false
		}
		DeferCleanup(resume)
		s.load(25, 2, 2)
		Eventually(s.replicas(ctx)).Should(Equal("17/2/?"))
		Eventually(s.state(ctx, "c3")).Should(Equal("Unreachable NoContact"))
		resume()
		Eventually(s.replicas(ctx)).Should(Equal("24/2/2"))
		s.guard.held()
	})

	hubDown := func(ctx context.Context, name string, outage time.Duration) {
		s := newShop(ctx, name, 3, 30, atLeastOne)
		Eventually(s.bounds(ctx)).Should(Equal("1..10/1..10/1..10"))
		Expect(hub.Process(controller).Kill()).To(Succeed())
		Expect(hub.Process(localcluster.APIServer).Kill()).To(Succeed())
		s.load(8, 5, 25)
		Eventually(s.replicas(ctx)).Should(Equal("8/5/10"))
		Consistently(s.maxima(ctx), outage).Should(Equal("10/10/10"))
		s.load(3, 5, 25)
		Eventually(s.replicas(ctx)).Should(Equal("3/5/10"))
		Expect(hub.Process(localcluster.APIServer).Start()).To(Succeed())
		Expect(hub.Process(localcluster.APIServer).WaitReady(ctx)).To(Succeed())
		Expect(hub.Process(controller).Start()).To(Succeed())
		Eventually(s.replicas(ctx)).Should(Equal("3/5/20"))
		s.guard.held()
	}
	It("while the hub is down", Label("long"), func(ctx context.Context) { hubDown(ctx, "down", 3*time.Second) })
	It("while the hub is down for five minutes", Label("long"), func(ctx context.Context) { hubDown(ctx, "long-down", 5*time.Minute) })
})

var _ = Describe("Use case 3: a site first, and a cloud when the site is full", func() {
	It("moves the workload to the cloud, and back again", Label("long"), func(ctx context.Context) {
		// Each pod takes a third of a node, so a member holds 4.
		s := newShop(ctx, "spill", 1, 10, func(s *spec) {
			s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: []string{"c1", "c2"}}}}
			s.Clusters = []v1alpha1.ClusterPreference{{Name: "c1", Tier: 1}}
			s.Joining = &v1alpha1.Joining{OnDemand: true, QuietSeconds: ptr.To[int32](5)}
			s.Rebalance.StartTimeoutSeconds, s.LeavePolicy = ptr.To[int32](8), v1alpha1.LeaveDelete
			s.Placement = &v1alpha1.Placement{Mode: v1alpha1.Template, Template: &runtime.RawExtension{Raw: []byte(`{
				"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"spill"},"spec":{"selector":{"matchLabels":{"app":"spill"}},
				"template":{"metadata":{"labels":{"app":"spill"}},"spec":{"containers":[{"name":"work","image":"registry.example/work:1","resources":{"requests":{"cpu":"30"}}}]}}}}`)}}
		})
		s.load(0, 3, 0)
		Eventually(s.bounds(ctx)).Should(Equal("-/1..10/-"))
		Eventually(s.replicas(ctx)).Should(Equal("-/3/-"))
		s.load(3, 9, 0)
		Eventually(s.maxima(ctx)).Should(Equal("5/5/-"))
		Eventually(s.replicas(ctx)).Should(Equal("3/4/-"))
		s.load(0, 2, 0)
		Eventually(s.replicas(ctx)).Should(Equal("-/2/-"))
		Eventually(s.bounds(ctx)).Should(Equal("-/1..10/-"))
		s.guard.held()
	})
})

var _ = Describe("Clusters", func() {
	It("leave and join by their labels", Label("long"), func(ctx context.Context) {
		s := newShop(ctx, "moving", 3, 30, atLeastOne)
		Eventually(s.bounds(ctx)).Should(Equal("1..10/1..10/1..10"))
		s.load(2, 7, 2)
		Eventually(s.replicas(ctx)).Should(Equal("2/7/2"))
		s.change(ctx, without("c2"))
		Eventually(s.condition(ctx, "ReplicasLeft")).Should(Equal("True WithoutAutoscaler"))
		s.load(30, 7, 2)
		Eventually(s.replicas(ctx)).Should(Equal("20/7/2"), "what runs in c2 counts")
		Expect(s.state(ctx, "c2")()).To(Equal("Left ReplicasLeft"))
		s.change(ctx, func(s *spec) { s.ClusterSelector = nil })
		Eventually(s.condition(ctx, "ReplicasLeft")).Should(Equal("False NoneLeft"))
		Eventually(s.maxima(ctx)).Should(Equal("20/7/3"))
		Expect(s.replicas(ctx)()).To(Equal("20/7/2"))
		s.guard.held()
	})

	It("that cannot be used are reported, and the others continue", Label("long"), func(ctx context.Context) {
		registerText(ctx, "garbage", []byte("{{"))
		path, err := members[0].KubeconfigFor("nobody")
		Expect(err).NotTo(HaveOccurred())
		registerFile(ctx, "powerless", path)
		DeferCleanup(func(ctx context.Context) {
			for _, name := range []string{"garbage", "powerless"} {
				Expect(hubCore.CoreV1().Secrets(clusters).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
			}
		})
		foreign := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "faulty"}}
		foreign.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "faulty"}
		foreign.Spec.MaxReplicas = 99
		_, err = members[2].core.AutoscalingV2().HorizontalPodAutoscalers(namespace).Create(ctx, foreign, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(members[2].core.AutoscalingV2().HorizontalPodAutoscalers(namespace).Delete(ctx, "faulty", metav1.DeleteOptions{})).To(Succeed())
		})
		s := newShop(ctx, "faulty", 2, 20, atLeastOne)
		s.guard.stop() // the foreign one is above any sum
		Eventually(s.bounds(ctx)).Should(Equal("1..10/1..10/1..99"))
		Eventually(s.state(ctx, "garbage")).Should(Equal("Unreachable KubeconfigInvalid"))
		Eventually(s.state(ctx, "powerless")).Should(Equal("Unreachable ListRefused"))
		Eventually(s.state(ctx, "c3")).Should(Equal("Refused NameTaken"))
		Expect(s.condition(ctx, "Ready")()).To(Equal("False ClustersRefused"))
		By("changing the template, field by field")
		s.change(ctx, func(s *spec) { s.Behavior = nil })
		Eventually(func() (any, error) {
			h, err := members[0].core.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, "faulty", metav1.GetOptions{})
			return h.Spec.Behavior, err
		}).Should(BeNil(), "what is not wanted any more is taken away")
		s.change(ctx, func(s *spec) {
			s.Metrics = []runtime.RawExtension{{Raw: []byte(`{"type":"Rumour","rumour":{}}`)}}
		})
		Eventually(s.state(ctx, "c1")).Should(HavePrefix("Refused "))
		Expect(s.bounds(ctx)()).To(Equal("1..10/1..10/1..99"), "nothing is overwritten")
	})
})
