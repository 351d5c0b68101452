// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
)

var _ = Describe("Informers", func() {
	It("list each kind once, however many controllers ask for it, and only kinds that one asks for", func(ctx SpecContext) {
		core := fake.NewClientset(fixture.Node("n"), fixture.Pod("p"))
		var mu sync.Mutex
		lists := map[string]int{}
		core.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			lists[a.GetResource().Resource]++
			return false, nil, nil
		})
		i := target.New(core, nil)
		DeferCleanup(i.Shutdown)
		var controllers sync.WaitGroup
		for range 4 {
			controllers.Go(func() {
				filled := []cache.DoneChecker{i.Pods().HasSyncedChecker(), i.Nodes().HasSyncedChecker()}
				i.Start(ctx)
				cache.WaitFor(ctx, "", filled...)
			})
		}
		controllers.Wait()
		mu.Lock()
		defer mu.Unlock()
		Expect(lists).To(Equal(map[string]int{"pods": 1, "nodes": 1}))
	})

	It("have the indexes that controllers look into", func() {
		i := target.New(nil, nil)
		pods, nodes := i.Pods().GetIndexer(), i.Nodes().GetIndexer()
		for name, change := range map[string]func(*corev1.Pod){
			"waits":     func(*corev1.Pod) {},
			"runs":      func(p *corev1.Pod) { p.Spec.NodeName = "n" },
			"nominated": func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" },
			"ended":     func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		} {
			Expect(pods.Add(fixture.Pod(name, change))).To(Succeed())
		}
		for name, ready := range map[string]corev1.ConditionStatus{"ready": corev1.ConditionTrue, "silent": corev1.ConditionUnknown} {
			Expect(nodes.Add(fixture.Node(name, func(n *corev1.Node) {
				n.Spec.ProviderID = "id-" + name
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
			}))).To(Succeed())
		}
		Expect(pods.IndexKeys(target.ByPlacement, target.Waiting)).To(ConsistOf("default/waits"))
		Expect(pods.IndexKeys(stores.ByNode, "n")).To(ConsistOf("default/runs"))
		Expect(nodes.IndexKeys(target.ByReadiness, target.Unready)).To(ConsistOf("silent"))
		Expect(nodes.IndexKeys(target.ByProviderID, "id-ready")).To(ConsistOf("ready"))
	})
})
