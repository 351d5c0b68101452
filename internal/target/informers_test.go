// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
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

	It("begin with the stored state, even if the server's cache is old and the watch is late", func(ctx SpecContext) {
		server := sim.New(sim.Options{Resources: slices.Concat(sim.Core, sim.Workloads, sim.Shapes)})
		DeferCleanup(server.Close)
		core := kubernetes.NewForConfigOrDie(server.ConfigFor("user"))
		world.Create(core.CoreV1().Nodes(), fixture.Node("n"))
		world.Create(core.CoreV1().Pods(fixture.Namespace), fixture.Pod("p"))
		world.Create(core.AppsV1().DaemonSets(fixture.Namespace), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "d"}})
		world.Create(core.BatchV1().Jobs(fixture.Namespace), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j"}})
		server.WatchLists(false)
		server.Stale("", time.Hour)
		server.Lag("", sim.Constantly(time.Hour))
		i := target.New(core, nil)
		DeferCleanup(i.Shutdown)
		for _, informer := range []cache.SharedIndexInformer{i.Nodes(), i.Pods(), i.DaemonSets(), i.Jobs()} {
			i.Start(ctx)
			Expect(cache.WaitFor(ctx, "", informer.HasSyncedChecker())).To(BeTrue())
			Expect(informer.GetStore().List()).To(HaveLen(1))
		}
	})

	It("keep of each object only what its transform keeps", func(ctx SpecContext) {
		large := metav1.ObjectMeta{Namespace: "default", Name: "large", Annotations: map[string]string{"large": strings.Repeat("x", 256<<10-1)}}
		core := fake.NewClientset(&corev1.Pod{ObjectMeta: large}, &policyv1.PodDisruptionBudget{ObjectMeta: large}, &appsv1.DaemonSet{ObjectMeta: large}, &appsv1.ReplicaSet{ObjectMeta: large}, &batchv1.Job{ObjectMeta: large}, &schedulingv1alpha2.PodGroup{ObjectMeta: large})
		i := target.New(core, nil)
		DeferCleanup(i.Shutdown)
		for _, informer := range []cache.SharedIndexInformer{i.Pods(), i.Budgets(), i.DaemonSets(), i.ReplicaSets(), i.Jobs(), i.PodGroups()} {
			i.Start(ctx)
			Expect(cache.WaitFor(ctx, "", informer.HasSyncedChecker())).To(BeTrue())
			Expect(informer.GetStore().List()).To(ConsistOf(HaveField("ObjectMeta.Annotations", BeEmpty())))
		}
	})

	It("tell whether budgets are known", func(ctx SpecContext) {
		i := target.New(fake.NewClientset(), nil)
		DeferCleanup(i.Shutdown)
		filled := i.Budgets().HasSyncedChecker()
		Expect(i.BudgetsUnknown()).To(Equal("they have not been read yet"))
		i.Start(ctx)
		Expect(cache.WaitFor(ctx, "", filled)).To(BeTrue())
		Expect(i.BudgetsUnknown()).To(BeEmpty())
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
		Expect(pods.IndexKeys(target.ByPlacement, target.Nominated)).To(ConsistOf("default/nominated"))
		Expect(pods.IndexKeys(stores.ByNode, "n")).To(ConsistOf("default/runs"))
		Expect(nodes.IndexKeys(target.ByReadiness, target.Unready)).To(ConsistOf("silent"))
		Expect(nodes.IndexKeys(target.ByProviderID, "id-ready")).To(ConsistOf("ready"))
	})
})
