// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	poolpkg "github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/localcluster"
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
		Eventually(p.message(ctx)).WithContext(ctx).Should(ContainSubstring("no machine is drained, because each one runs a pod that must not be evicted"))
		p.undisturbed(ctx, before, busy)

		freed := p.podOn(ctx, busy[0])
		annotate(ctx, freed, "true")
		p.rests(ctx, 3, 1, "Complete")
		Expect(namesOf(p.machines(ctx))).To(And(ContainElements(slices.DeleteFunc(before, func(name string) bool { return name == busy[0] })), Not(ContainElement(busy[0]))))
		Expect(p.busy(ctx)).To(ConsistOf(busy[1]), "its successor waits")
	})

	It("stay while each holds a pod that cluster-autoscaler does not evict; then the one is drained whose budget allows it", func(ctx context.Context) {
		p := newPool(ctx, "careful", 3, excess(1), repairedAfter(10*time.Minute))
		p.rests(ctx, 3, 1, "Complete")
		p.surplus(ctx, func() {
			p.replicated(ctx, metav1.NamespaceSystem, "system-careful")
			guarded := p.replicated(ctx, namespace, "guarded-careful")
			p.budget(ctx, guarded, 0)
			p.work(ctx, 1, onLocalStorage)
		}, func() { p.moreWork(ctx, 2) })
		before, busy := namesOf(p.machines(ctx)), p.busy(ctx)
		p.undisturbed(ctx, before, busy)
		Eventually(p.message(ctx)).WithContext(ctx).Should(ContainSubstring("no machine is drained, because each one runs a pod that must not be evicted now"))

		p.budget(ctx, "guarded-careful", 1)
		p.rests(ctx, 3, 1, "Complete")
		Expect(p.busy(ctx)).To(Equal(busy))
		Expect(p.runs(ctx, metav1.NamespaceSystem, "system-careful")).To(BeTrue())
		Expect(p.runs(ctx, namespace, "guarded-careful")).To(BeFalse(), "its successor waits")
	})

	It("stay while more Nodes of the cluster are not ready than flags allow, as do those of uneven zones; both move when that has passed", func(ctx context.Context) {
		z := newZones(ctx, "braked", []int32{3, 1})
		z.settle(ctx, 3, 1)
		w := z.work(ctx, 4)
		w.runs(ctx)
		p := newPool(ctx, "surplus", 3, excess(1), repairedAfter(10*time.Minute))
		p.rests(ctx, 3, 1, "Complete")
		lift := brake(ctx, 10) // enough, also while Nodes of the pools before are on their way out
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

var _ = DescribeTable("In the long run, a machine is drained", Label("long", "ours"), Serial,
	func(ctx context.Context, flag string, systemStays, localStays bool) {
		c := another(ctx, localcluster.Options{Name: "e2e-evict"})
		Expect(c.Apply(ctx, "kubernetes/crds", "kubernetes/policies")).To(Succeed())
		runProgram(ctx, c, localcluster.Program{Name: machineController, Flags: rates})
		runProgram(ctx, c, localcluster.Program{Name: mcm, Flags: slices.Concat(rates, []string{managerControllers, "--surplus-patience=10s", flag})})
		moveTo(c, c)
		p := newPool(ctx, "evict", 3, excess(1), repairedAfter(10*time.Minute))
		p.rests(ctx, 3, 1, "Complete")
		p.surplus(ctx, func() {
			p.replicated(ctx, metav1.NamespaceSystem, "system-evict")
			p.replicated(ctx, namespace, "local-evict", onLocalStorage)
			p.work(ctx, 1, notSafeToEvict)
		}, func() { p.moreWork(ctx, 2) })
		p.rests(ctx, 3, 1, "Complete")
		Expect(p.runs(ctx, metav1.NamespaceSystem, "system-evict")).To(Equal(systemStays))
		Expect(p.runs(ctx, namespace, "local-evict")).To(Equal(localStays))
		Expect(p.busy(ctx)).To(HaveLen(2))
	},
	Entry("with a pod of kube-system, if --skip-nodes-with-system-pods is false", "--skip-nodes-with-system-pods=false", false, true),
	Entry("with a pod on local storage, if --skip-nodes-with-local-storage is false", "--skip-nodes-with-local-storage=false", true, false),
)

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
	pod.Spec = wholeMachine(p.name)
	_, err := kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
	})
	Eventually(func() (string, error) { return podState(ctx, pod.Name) }).WithContext(ctx).Should(Equal("Running"))
}

// replicated makes a ReplicaSet with one pod that takes a whole machine, waits until the pod runs, and returns the name of both's app.
func (p pool) replicated(ctx context.Context, in, name string, changes ...func(*corev1.PodTemplateSpec)) string {
	GinkgoHelper()
	labels := map[string]string{"app": name}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Selector, set.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	set.Spec.Template.Spec = wholeMachine(p.name)
	for _, change := range changes {
		change(&set.Spec.Template)
	}
	_, err := kube.AppsV1().ReplicaSets(in).Create(ctx, set, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.AppsV1().ReplicaSets(in).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
	Eventually(func() bool { return p.runs(ctx, in, name) }).WithContext(ctx).Should(BeTrue())
	return name
}

// runs reports whether the only pod of an app runs.
func (p pool) runs(ctx context.Context, in, app string) bool {
	GinkgoHelper()
	list, err := kube.CoreV1().Pods(in).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	Expect(err).NotTo(HaveOccurred())
	return len(list.Items) == 1 && list.Items[0].Status.Phase == corev1.PodRunning
}

// budget lets so many pods of an app be evicted now, if all of them run.
func (p pool) budget(ctx context.Context, app string, unavailable int) {
	GinkgoHelper()
	budgets := kube.PolicyV1().PodDisruptionBudgets(namespace)
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: app}}
	b.Spec.MaxUnavailable, b.Spec.Selector = ptr.To(intstr.FromInt(unavailable)), &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	if _, err := budgets.Create(ctx, b, metav1.CreateOptions{}); err == nil {
		DeferCleanup(func(ctx context.Context) { Expect(budgets.Delete(ctx, app, metav1.DeleteOptions{})).To(Succeed()) })
		return
	}
	_, err := budgets.Patch(ctx, app, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"maxUnavailable":%d}}`, unavailable), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func onLocalStorage(t *corev1.PodTemplateSpec) {
	t.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
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
