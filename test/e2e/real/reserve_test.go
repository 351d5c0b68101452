// SPDX-License-Identifier: Apache-2.0

package real

import (
	"context"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// values matches the values of a map.
func values(m types.GomegaMatcher) types.GomegaMatcher {
	return WithTransform(func(all map[string]string) []string {
		var each []string
		for _, value := range all {
			each = append(each, value)
		}
		slices.Sort(each)
		return each
	}, m)
}

var _ = Describe("A reserve of real machines", func() {
	It("is closed from the registration of its Nodes, and runs pods once it is released", func(ctx context.Context) {
		first := firstLooks(ctx)
		p := newPool(ctx, "released", 0, 1, small)
		p.rests(ctx, 0, 1)
		Expect(first(p.node(ctx, "closed"))).To(HavePrefix("registering"))
		p.patch(ctx, `{"spec":{"replicas":1}}`)
		p.rests(ctx, 1, 1)
		reserve := p.node(ctx, "closed")
		p.work(ctx, 1, tiny)
		Eventually(p.running).WithContext(ctx).Should(values(ConsistOf(p.node(ctx, "open"))))
		p.scaleWork(ctx, 2)
		Eventually(p.running).WithContext(ctx).Should(values(ContainElement(reserve)))
		p.rests(ctx, 2, 1)
	})

	It("stands in for a machine that dies, whose pods run on it", func(ctx context.Context) {
		p := newPool(ctx, "mortal", 1, 1, small)
		p.rests(ctx, 1, 1)
		p.work(ctx, 1, tiny)
		sick, reserve := p.node(ctx, "open"), p.node(ctx, "closed")
		Eventually(p.running).WithContext(ctx).Should(values(ConsistOf(sick)))
		suffer(ctx, "machines: {"+sick+": {dead: true}}")
		Eventually(p.running).WithContext(ctx).Should(values(ConsistOf(reserve)))
	})

	It("replaces no pod when a machine is cut off and comes back, or its kubelet restarts", func(ctx context.Context) {
		p := newPool(ctx, "shaken", 1, 1, small)
		p.rests(ctx, 1, 1)
		p.work(ctx, 1, tiny)
		Eventually(p.running).WithContext(ctx).Should(HaveLen(1))
		before, err := p.pods(ctx)
		Expect(err).NotTo(HaveOccurred())
		at := p.node(ctx, "open")
		By("cutting it off for less than anybody notices")
		suffer(ctx, "machines: {"+at+": {ready: Unknown}}")
		Consistently(p.looks, grace/4).WithContext(ctx).Should(Equal([]string{"closed", "open"}))
		suffer(ctx, "")
		for _, name := range []string{at, p.node(ctx, "closed")} {
			killService(name, "kubelet")
		}
		Consistently(p.looks, grace*3/2).WithContext(ctx).Should(Equal([]string{"closed", "open"}))
		after, err := p.pods(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(after).To(HaveLen(1))
		Expect(after[0].UID).To(Equal(before[0].UID))
		Expect(after[0].Status.ContainerStatuses[0].RestartCount).To(BeZero())
	})

	It("moves each pod once in a rolling update", func(ctx context.Context) {
		p := newPool(ctx, "rolled", 2, 1, small)
		p.rests(ctx, 2, 1)
		p.work(ctx, 2, tiny)
		Eventually(p.running).WithContext(ctx).Should(HaveLen(2))
		old, err := p.nodes(ctx)
		Expect(err).NotTo(HaveOccurred())
		created := podsCreated(ctx, p)
		p.patch(ctx, `{"spec":{"template":{"metadata":{"labels":{"generation":"2"}}}}}`)
		Eventually(p.nodes).WithContext(ctx).WithTimeout(2 * soon).Should(And(HaveLen(3), Not(HaveKey(BeKeyOf(old)))))
		p.rests(ctx, 2, 1)
		Eventually(p.running).WithContext(ctx).Should(HaveLen(2))
		Expect(created()).To(Equal(4), "two, and each once more")
	})

	It("gets its DaemonSets: those that tolerate it at once, the others when it is released", func(ctx context.Context) {
		p := newPool(ctx, "attended", 0, 1, small)
		p.agent(ctx, "early", true)
		p.agent(ctx, "late", false)
		early, late := poolOf(cluster, "early"), poolOf(cluster, "late")
		p.rests(ctx, 0, 1)
		reserve := p.node(ctx, "closed")
		Eventually(early.running).WithContext(ctx).Should(values(ConsistOf(reserve)))
		Expect(late.pods(ctx)).To(BeEmpty())
		p.patch(ctx, `{"spec":{"replicas":1}}`)
		Eventually(late.running).WithContext(ctx).Should(values(ContainElement(reserve)))
	})
})

// firstLooks returns how each Node looked when it appeared.
func firstLooks(ctx context.Context) func(node string) string {
	GinkgoHelper()
	var mu sync.Mutex
	first := map[string]string{}
	follow(ctx, cache.NewListWatchFromClient(kube.CoreV1().RESTClient(), "nodes", "", nothing), &corev1.Node{}, func(object any) {
		mu.Lock()
		defer mu.Unlock()
		node := object.(*corev1.Node)
		first[node.Name] = looksOf(node)
	})
	return func(node string) string {
		mu.Lock()
		defer mu.Unlock()
		return first[node]
	}
}

// podsCreated returns a function that counts the pods of a pool that have appeared, including those that are there.
func podsCreated(ctx context.Context, p pool) func() int {
	GinkgoHelper()
	var mu sync.Mutex
	seen := map[string]bool{}
	follow(ctx, cache.NewFilteredListWatchFromClient(p.kube.CoreV1().RESTClient(), "pods", namespace, func(o *metav1.ListOptions) { o.LabelSelector = "app=" + p.name }), &corev1.Pod{}, func(object any) {
		mu.Lock()
		defer mu.Unlock()
		seen[string(object.(*corev1.Pod).UID)] = true
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(seen)
	}
}
