// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/localcluster"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	poolpkg "github.com/evenkeel/evenkeel/pkg/pool"
)

var _ = Describe("In the long run, more machines that serve than replicas", Label("long", "ours"), Ordered, Serial, func() {
	BeforeAll(func(ctx context.Context) {
		c := another(ctx, localcluster.Options{Name: "e2e-surplus"})
		Expect(c.Apply(ctx, "kubernetes/crds", "kubernetes/policies")).To(Succeed())
		runProgram(ctx, c, localcluster.Program{Name: machineController, Flags: rates})
		runProgram(ctx, c, localcluster.Program{Name: mcm, Flags: slices.Concat(rates, []string{managerControllers, "--surplus-patience=10s", "--max-total-unready-percentage=20", "--ok-total-unready-count=2"})})
		moveTo(c, c)
	})

	It("stay while each holds a pod that must not be evicted; then the one that does not is drained", func(ctx context.Context) {
		p := newPool(ctx, "pinned", 3, excess(1), repairedAfter(10*time.Minute))
		p.rests(ctx, 3, 1, "Complete")
		p.surplus(ctx, func() {
			p.bare(ctx, 1)
			p.bare(ctx, 2)
			p.work(ctx, 1, notSafeToEvict)
		}, func() { p.moreWork(ctx, 2) })
		before, busy := namesOf(p.machines(ctx)), p.busy(ctx)
		Eventually(p.message(ctx)).WithContext(ctx).Should(ContainSubstring("no machine is drained, because each candidate runs a pod that must not be evicted"))
		p.undisturbed(ctx, before, busy)

		freed := p.podOn(ctx, busy[0])
		annotate(ctx, freed, "true")
		p.rests(ctx, 3, 1, "Complete")
		Expect(namesOf(p.machines(ctx))).To(And(ContainElements(slices.DeleteFunc(before, func(name string) bool { return name == busy[0] })), Not(ContainElement(busy[0]))))
		Expect(p.busy(ctx)).To(ConsistOf(busy[1]), "its successor waits")
	})

	It("stay while more Nodes of the cluster are not ready than flags allow, as do those of uneven zones; both move when that has passed", func(ctx context.Context) {
		z := newZones(ctx, "braked", []int32{3, 1})
		z.settle(ctx, 3, 1)
		w := z.work(ctx, 4)
		w.runs(ctx)
		p := newPool(ctx, "surplus", 3, excess(1), repairedAfter(10*time.Minute))
		p.rests(ctx, 3, 1, "Complete")
		lift := brake(ctx, 3)
		z.annotate(ctx, machine.BalanceAnnotation, string(machine.BalanceContinuous))
		p.surplus(ctx, func() { p.work(ctx, 3) }, func() { p.moreWork(ctx, 4) })
		before, busy := namesOf(p.machines(ctx)), p.busy(ctx)
		Eventually(p.message(ctx)).WithContext(ctx).Should(ContainSubstring("no machine is drained while so many Nodes of the cluster are not ready"))
		p.undisturbed(ctx, before, busy)
		Expect(z.replicas(ctx)).To(Equal("3/1"))
		Expect(z.moves(ctx)).To(Equal("/"))
		Expect(w.evictions(ctx)).To(BeEmpty())

		lift()
		p.rests(ctx, 3, 1, "Complete")
		Expect(p.busy(ctx)).To(And(HaveLen(3), HaveEach(BeElementOf(busy))))
		Eventually(z.replicas).WithContext(ctx).WithTimeout(4 * time.Minute).Should(Equal("2/2"))
	})
})

// surplus has one machine more serve than replicas: the reserve stands in for one that is sick for a while. The first pods run before,
// the others when it does.
func (p pool) surplus(ctx context.Context, first, others func()) {
	GinkgoHelper()
	first()
	spare, sick := p.reserve(ctx)[0], p.serving(ctx)[0]
	setFault(ctx, "machines", sick, "ready: Unknown")
	Eventually(p.reservedNow(ctx)).WithContext(ctx).ShouldNot(ContainElement(spare))
	others()
	Eventually(func() []corev1.Pod { return must(p.podsOn(ctx, spare)) }).WithContext(ctx).Should(HaveLen(1))
	setFault(ctx, "machines", sick, "")
	Eventually(p.saying(ctx)).WithContext(ctx).Should(Equal("SurplusServing, 0 in reserve"))
}

// undisturbed expects for longer than the patience with a surplus that all machines and pods stay.
func (p pool) undisturbed(ctx context.Context, names, busy []string) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		list, err := p.machines(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(namesOf(list, nil)).To(ConsistOf(names))
		for _, m := range list {
			g.Expect(m.DeletionTimestamp).To(BeNil(), m.Name)
		}
		g.Expect(p.busy(ctx)).To(Equal(busy))
	}, "30s", "1s").Should(Succeed())
}

// message is that of the condition ReserveReady.
func (p pool) message(ctx context.Context) func() (string, error) {
	return func() (string, error) {
		md, err := p.deployment(ctx)
		if err != nil {
			return "", err
		}
		for _, c := range md.Status.Conditions {
			if c.Type == machine.ReserveReady {
				return c.Message, nil
			}
		}
		return "", nil
	}
}

// bare makes a pod of no controller that takes a whole machine, and waits until it runs.
func (p pool) bare(ctx context.Context, number int) {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bare-%s-%d", p.name, number)}}
	pod.Spec = corev1.PodSpec{
		NodeSelector:                  map[string]string{corev1.LabelTopologyZone: p.name},
		TerminationGracePeriodSeconds: new(int64),
		Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}},
	}
	_, err := kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
	})
	Eventually(func() (string, error) { return podState(ctx, pod.Name) }).WithContext(ctx).Should(Equal("Running"))
}

func notSafeToEvict(t *corev1.PodTemplateSpec) {
	t.Annotations = map[string]string{poolpkg.SafeToEvict: "false"}
}

func annotate(ctx context.Context, pod, safeToEvict string) {
	GinkgoHelper()
	_, err := kube.CoreV1().Pods(namespace).Patch(ctx, pod, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, poolpkg.SafeToEvict, safeToEvict), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (p pool) podsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (p pool) podOn(ctx context.Context, node string) string {
	GinkgoHelper()
	pods := must(p.podsOn(ctx, node))
	Expect(pods).To(HaveLen(1))
	return pods[0].Name
}

// brake adds so many Nodes that are not ready, until lift is called.
func brake(ctx context.Context, n int) (lift func()) {
	GinkgoHelper()
	var names []string
	for i := range n {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("dead-", i)}}
		node.Spec.Unschedulable = true
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		_, err := kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		names = append(names, node.Name)
	}
	return func() {
		GinkgoHelper()
		for _, name := range names {
			Expect(kube.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		}
	}
}
