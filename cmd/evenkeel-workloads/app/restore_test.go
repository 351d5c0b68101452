// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/reachability"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("A process", Serial, func() {
	serving := slices.Concat(sim.Core, sim.Workloads, []sim.Resource{
		{Group: balancer.GroupName, Version: "v1alpha1", Name: "balancers", Kind: "Balancer", Namespaced: true, Status: true},
		{Group: autoscaling.GroupName, Version: "v1alpha1", Name: "federatedhorizontalpodautoscalers", Kind: "FederatedHorizontalPodAutoscaler", Namespaced: true, Status: true},
	})
	both := func(server *sim.Server) (all []*running.Process) {
		GinkgoHelper()
		for _, controller := range controllerNames {
			r := start(server, controller)
			Eventually(r.HolderOf(controller), eventually).ShouldNot(BeEmpty())
			all = append(all, r)
		}
		return all
	}

	It("ends by itself when a backup of the storage was restored, and says so", func() {
		server := sim.New(sim.Options{Resources: serving})
		all := both(server)
		backup := server.Snapshot()
		others := kubernetes.NewForConfigOrDie(server.ConfigFor("others")).CoreV1().ConfigMaps("default")
		for i := range 500 { // as much as a cluster writes between two backups
			_, err := others.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		for _, r := range all {
			Consistently(r.Ended, (reachability.ProbeInterval+time.Second)/2).ShouldNot(Receive())
		}
		server.Restore(backup)
		server.LatencyOf(func(r sim.Request) (before, after time.Duration) { // the end does not overtake the event
			if r.Resource == "events" {
				before = time.Second / 2
			}
			return before, 0
		})
		for _, r := range all {
			Eventually(r.Ended, eventually).Should(Receive(MatchError(reachability.ErrRestored)))
		}
		Expect(server.Objects(corev1.SchemeGroupVersion.WithResource("events"))).To(ContainElement(
			WithTransform(func(e *unstructured.Unstructured) any { return e.Object["reason"] }, Equal("StorageRestored"))))
	})

	It("does not read the kind of a controller that it does not run, because its account may not", func() {
		for controller, other := range map[string]string{balancerName: "federatedhorizontalpodautoscalers", federatedName: "balancers"} {
			server := sim.New(sim.Options{Resources: serving})
			var read atomic.Bool
			server.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.Resource == other {
					read.Store(true)
				}
				return 0, 0
			})
			r := start(server, controller)
			Eventually(func() string { _, text := r.Get("/metrics"); return text }, eventually).Should(ContainSubstring(`evenkeel_cluster_silent{cluster="control"} 0`))
			Eventually(r.HolderOf(controller), eventually).ShouldNot(BeEmpty())
			Consistently(read.Load, time.Second).Should(BeFalse(), controller)
		}
	})

	It("does not take a cluster for silent that does not serve its kind", func() {
		for _, r := range both(sim.New(sim.Options{})) {
			Consistently(r.Ended, (reachability.SilentAfter+time.Second)/2).ShouldNot(Receive())
			code, text := r.Get("/metrics")
			Expect(code).To(Equal(http.StatusOK))
			Expect(text).To(ContainSubstring(`evenkeel_cluster_silent{cluster="control"} 0`))
		}
	})
})
