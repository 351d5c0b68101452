// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

var _ = Describe("A cluster that is registered under two names", func() {
	It("is used under the first one, and the status shows the mistake", func() {
		play(func(f *federation) {
			f.alias("guest", "c2")
			f.register("c1", "c2", "guest")
			f.start()
			f.create(Federated(3, 30, Prefer("c2", AtMost(4)), Prefer("guest", AtMost(9))))
			f.loads("shop", 30, 30)
			time.Sleep(10 * time.Minute)
			f.calls.take()
			time.Sleep(time.Hour)
			Expect(f.calls.take()["PATCH"]).To(BeZero())
			Expect(f.state("shop", "c2")).To(Equal("Used"))
			Expect(f.state("shop", "guest")).To(Equal("Refused SameCluster"))
			Expect(f.clusters[1].bounds("shop")).To(HaveSuffix("..4"), "whichever name creates it first")
			f.register("c1", "c2")
			f.remove("shop")
			f.settle()
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
			Expect(f.bounds("shop")).To(Equal("-/-"))
		}, "c1", "c2")
	})

	It("keeps its bounds when the second name is added, and when the first one is deselected", func() {
		play(func(f *federation) {
			f.alias("guest", "c1")
			f.register("c1")
			f.start()
			f.create(Federated(3, 21))
			f.loads("shop", 2)
			f.settle()
			f.calls.take()
			f.register("c1", "guest")
			time.Sleep(10 * time.Second)
			Expect(f.state("shop", "guest")).To(Equal("Refused SameCluster"))
			f.change("shop", func(s *Spec) {
				s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "guest"}}
			})
			time.Sleep(10 * time.Second)
			Expect(f.state("shop", "guest")).To(Equal("Used"))
			calls := f.calls.take()
			Expect(calls["PATCH"] + calls["POST"] + calls["DELETE"]).To(BeZero())
			Expect(f.bounds("shop")).To(Equal("3..21"))
			f.register("guest")
			f.settle()
			Expect(f.object("shop").Status.Clusters).To(HaveLen(1))
		}, "c1")
	})

	It("keeps no cluster from growing while another one is out of reach", func() {
		play(func(f *federation) {
			f.alias("guest", "c1")
			f.register("c1", "c2", "c3", "guest")
			f.start()
			f.create(Federated(3, 30))
			f.loads("shop", 2, 2, 2)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("10/10/10"))
			f.hang("c3")
			f.rotate()
			time.Sleep(time.Minute)
			f.loads("shop", 15)
			time.Sleep(10 * time.Minute)
			Expect(f.clusters[0].hpa("shop").Spec.MaxReplicas).To(BeNumerically(">=", 15))
		}, "c1", "c2", "c3")
	})

	It("keeps its autoscaler while it is read again under its first name, and has been under one that is not selected", func() {
		play(func(f *federation) {
			f.alias("guest", "c1")
			f.register("c1", "guest", "c2")
			f.start()
			f.create(Federated(3, 21, onlyReal))
			f.loads("shop", 5, 2)
			f.settle()
			before := f.bounds("shop")
			f.calls.take()
			f.hang("c1")
			f.rotate()
			time.Sleep(time.Minute)
			Expect(f.state("shop", "c1")).To(HavePrefix("Unreachable"))
			f.hang("")
			f.settle()
			Expect(f.calls.take()["DELETE"]).To(BeZero())
			Expect(f.bounds("shop")).To(Equal(before))
			Expect(f.state("shop", "c1")).To(Equal("Used"))
		}, "c1", "c2")
	})

	It("keeps its autoscaler, too, while its first name is about to be read that is listed as released", func() {
		play(func(f *federation) {
			f.alias("guest", "c1")
			f.register("c1", "guest", "c2")
			f.start()
			f.create(Federated(3, 21, onlyReal, func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: []string{"c1"}} }))
			f.loads("shop", 5, 2)
			f.settle()
			before := f.bounds("shop")
			f.calls.take()
			f.hang("c1")
			f.rotate()
			time.Sleep(4 * time.Second)
			f.hang("")
			f.settle()
			Expect(f.calls.take()["DELETE"]).To(BeZero())
			Expect(f.bounds("shop")).To(Equal(before))
		}, "c1", "c2")
	})

	It("keeps the workload that was created there when another client deletes the autoscaler", func() {
		play(func(f *federation) {
			before := f.place(onlyReal, fromTemplate)
			Expect(f.clusters[0].core.AutoscalingV2().HorizontalPodAutoscalers(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..10"))
			Expect(f.clusters[0].deployment("shop").UID).To(Equal(before))
		}, "c1")
	})

	It("keeps the workload, too, when another client deletes the autoscaler while the first name is yet to be read", func() {
		play(func(f *federation) {
			before := f.place(onlyReal, fromTemplate)
			f.hang("c1")
			f.rotate()
			time.Sleep(20 * time.Second)
			Expect(f.clusters[0].core.AutoscalingV2().HorizontalPodAutoscalers(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(time.Minute)
			f.hang("")
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..10"))
			Expect(f.clusters[0].deployment("shop").UID).To(Equal(before))
		}, "c1")
	})

	It("keeps its autoscaler and its workload when the first name is removed from the registry, and is used under the second one once the first one is released", func() {
		play(func(f *federation) {
			before := f.place(fromTemplate)
			f.calls.take()
			f.register("guest")
			f.settle()
			Expect(f.calls.take()["DELETE"]).To(BeZero())
			Expect(f.state("shop", "guest")).To(Equal("Refused SameCluster"))
			f.change("shop", func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: []string{"c1"}} })
			f.settle()
			Expect(f.state("shop", "guest")).To(Equal("Used"))
			Expect(f.calls.take()["DELETE"]).To(BeZero())
			Expect(f.bounds("shop")).To(Equal("1..10"))
			Expect(f.clusters[0].deployment("shop").UID).To(Equal(before))
		}, "c1")
	})

	It("is used under the second name while the first one is out of reach and released", func() {
		play(func(f *federation) {
			f.alias("guest", "c1")
			f.register("c1", "c2", "guest")
			f.start()
			f.create(Federated(3, 20, func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: []string{"c1"}} }))
			f.loads("shop", 2, 2)
			f.settle()
			f.calls.take()
			f.hang("c1")
			time.Sleep(5 * time.Minute)
			Expect(f.state("shop", "guest")).To(Equal("Used"))
			f.loads("shop", 15, 2)
			time.Sleep(5 * time.Minute)
			Expect(f.clusters[0].hpa("shop").Spec.MaxReplicas).To(BeNumerically(">=", 15))
			Expect(f.sum("shop")).To(BeEquivalentTo(20))
			f.hang("")
			f.settle()
			Expect(f.state("shop", "c1")).To(Equal("Used"))
			Expect(f.state("shop", "guest")).To(Equal("Refused SameCluster"))
			calls := f.calls.take()
			Expect(calls["POST"] + calls["DELETE"]).To(BeZero())
			Expect(f.sum("shop")).To(BeEquivalentTo(20))
		}, "c1", "c2")
	})

	It("keeps the workload until workloads are read under the first name, also where that shows before that the autoscaler is gone", func() {
		first := plan.Cluster{Name: "c1", Registered: true, Selected: true, Absent: true}
		second := plan.Cluster{Name: "guest", Registered: true, Reachable: true, Absent: true, Workload: plan.Workload{Known: true, Exists: true, Ours: true, UID: "w"}}
		o := Federated(1, 10, fromTemplate)
		o.Status.Clusters = []v1alpha1.ClusterStatus{{Name: "c1", Epoch: 1}}
		clusters := []plan.Cluster{first, second}
		DoubtNames(clusters, o)
		Expect(clusters[1].Fault.Reason).To(Equal("SameCluster"))
		clusters[0].Workload.Known, clusters[1].Fault = true, plan.Hold{}
		DoubtNames(clusters, o)
		Expect(clusters[1].Fault).To(BeZero())
	})

	It("keeps an autoscaler that shows under the second name first, while it is being created under the first one", func() {
		first := plan.Cluster{Name: "c1", Registered: true, Selected: true, Reachable: true, Absent: true}
		second := plan.Cluster{Name: "guest", Registered: true, Reachable: true, Local: &plan.Local{Bounds: plan.Bounds{Min: 1, Max: 10}, UID: "x", Ours: true}}
		o := Federated(1, 10)
		o.Status.Clusters = []v1alpha1.ClusterStatus{{Name: "c1", Epoch: 1, Outstanding: &v1alpha1.Outstanding{MinReplicas: 1, MaxReplicas: 10}}}
		clusters := []plan.Cluster{first, second}
		DoubtNames(clusters, o)
		Expect(clusters[1].Doubtful).To(BeTrue())
		Expect(clusters[1].Fault.Reason).To(Equal("SameCluster"))
	})

	It("counts with what it shows under its second name, if that is later", func() {
		a := plan.Cluster{Name: "a", Selected: true, Local: &plan.Local{Bounds: plan.Bounds{Min: 1, Max: 10}, Version: "100", UID: "x"}}
		b := plan.Cluster{Name: "b", Selected: true, Local: &plan.Local{Bounds: plan.Bounds{Min: 1, Max: 17}, Version: "120", UID: "x"}}
		for _, clusters := range [][]plan.Cluster{{a, b}, {b, a}} {
			RefuseAliases(clusters, Federated(1, 20))
			Expect(clusters[0].Local.Max).To(BeEquivalentTo(17))
			Expect([]bool{clusters[0].Alias, clusters[1].Alias}).To(Equal([]bool{false, true}))
		}
	})

	It("loses both with an object that is deleted after the first name was removed from the registry", func() {
		play(func(f *federation) {
			f.place(fromTemplate)
			f.register("guest")
			f.settle()
			f.expectRemoval()
		}, "c1")
	})

	It("goes under the second name where the first one is released, with an object that is deleted", func() {
		play(func(f *federation) {
			f.place(fromTemplate)
			f.hang("c1")
			f.change("shop", func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: []string{"c1"}} })
			f.expectRemoval()
		}, "c1")
	})
})

// expectRemoval deletes the object, and expects its autoscaler and its workload to go with it.
func (f *federation) expectRemoval() {
	f.remove("shop")
	f.settle()
	Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
	Expect(f.bounds("shop")).To(Equal("-"))
	Expect(f.clusters[0].Get(deploymentGVR, ns, "shop")).To(BeNil())
}

// fromTemplate has the hub create the workload.
func fromTemplate(s *Spec) {
	s.Placement = &v1alpha1.Placement{Mode: v1alpha1.Template, Template: &runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop"},"spec":{"selector":{"matchLabels":{"app":"shop"}},"template":{"metadata":{"labels":{"app":"shop"}}}}}`)}}
}

// onlyReal selects no cluster by the name guest.
func onlyReal(s *Spec) {
	s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"guest"}}}}
}

// place has the hub create the workload in a cluster that is registered under two names, and returns the UID of that.
func (f *federation) place(change ...func(*Spec)) types.UID {
	GinkgoHelper()
	Expect(f.clusters[0].core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
	f.alias("guest", "c1")
	f.register("c1", "guest")
	f.start()
	f.create(Federated(1, 10, change...))
	f.settle()
	return f.clusters[0].deployment("shop").UID
}
