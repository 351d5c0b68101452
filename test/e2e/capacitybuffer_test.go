// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/chart"
)

// buffer creates a CapacityBuffer for the work of a pool.
func (p pool) buffer(ctx context.Context, percentage int32, changes ...func(*v1beta1.CapacityBuffer)) {
	GinkgoHelper()
	buffers := machines.CapacityBufferV1beta1().CapacityBuffers(namespace)
	b := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: v1beta1.CapacityBufferSpec{
		ProvisioningStrategy: ptr.To(v1beta1.StrategyReserved), Percentage: &percentage,
		ScalableRef: &v1beta1.ScalableRef{APIGroup: "apps", Kind: "Deployment", Name: "work-" + p.name},
	}}
	for _, change := range changes {
		change(b)
	}
	_, err := buffers.Create(ctx, b, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(buffers.Delete(ctx, p.name, metav1.DeleteOptions{})).To(Or(Succeed(), MatchError(ContainSubstring("not found"))))
	})
}

// dedicate has the pool's buffer hold so many chunks on machines for the pods of its workload alone.
func (p pool) dedicate(ctx context.Context, chunks int32) {
	GinkgoHelper()
	p.buffer(ctx, 0, func(b *v1beta1.CapacityBuffer) {
		b.Annotations = map[string]string{v1beta1.DedicatedAnnotation: "workload"}
		b.Spec.Replicas, b.Spec.Percentage = &chunks, nil
	})
}

// owners are the machines that are dedicated, and whom to.
func (p pool) owners(ctx context.Context) (map[string]string, error) {
	all, err := p.machines(ctx)
	owners := map[string]string{}
	for _, m := range all {
		if owner := m.Annotations[machine.DedicatedAnnotation]; owner != "" {
			owners[m.Name] = owner
		}
	}
	return owners, err
}

// strangers makes so many pods of a Deployment that the pool's machines are not for. They wait.
func (p pool) strangers(ctx context.Context, pods int32) {
	GinkgoHelper()
	d, err := kube.AppsV1().Deployments(namespace).Get(ctx, "work-"+p.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	labels := map[string]string{"strangers": p.name}
	d.ObjectMeta = metav1.ObjectMeta{Name: "strangers-" + p.name}
	d.Spec.Replicas, d.Spec.Selector, d.Spec.Template.Labels = &pods, &metav1.LabelSelector{MatchLabels: labels}, labels
	_, err = kube.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.AppsV1().Deployments(namespace).Delete(ctx, d.Name, metav1.DeleteOptions{})).To(Succeed())
	})
}

// nodesOf are the nodes of pods with a label that names the pool; empty for those that wait.
func (p pool) nodesOf(ctx context.Context, label string) (nodes []string, err error) {
	all, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: label + "=" + p.name})
	for _, pod := range all.Items {
		nodes = append(nodes, pod.Spec.NodeName)
	}
	return nodes, err
}

// buffered is the number of chunks of the pool's buffer, and why it is ready or not.
func (p pool) buffered(ctx context.Context) (string, error) {
	return p.bufferIs(ctx, v1beta1.ConditionReady)
}

// bufferIs is the number of chunks of the pool's buffer, and one of its conditions.
func (p pool) bufferIs(ctx context.Context, kind string) (string, error) {
	b, err := machines.CapacityBufferV1beta1().CapacityBuffers(namespace).Get(ctx, p.name, metav1.GetOptions{})
	is := meta.FindStatusCondition(b.Status.Conditions, kind)
	if err != nil || is == nil {
		return "", err
	}
	return fmt.Sprintf("%d %s %s", ptr.Deref(b.Status.Replicas, -1), is.Status, is.Reason), nil
}

var _ = Describe("A CapacityBuffer", Label("ours"), func() {
	It("keeps room for a part of a Deployment, which grows into this room at once, and is refilled", func(ctx context.Context) {
		p := newPool(ctx, "buffered", 5, withBounds("1:12"))
		p.work(ctx, 5)
		p.buffer(ctx, 40)
		Eventually(p.buffered).WithContext(ctx).Should(Equal("2 True Complete"))
		p.rests(ctx, 5, 2, "Complete")
		before := namesOf(p.machines(ctx))

		By("growing by as much as there is room for")
		p.moreWork(ctx, 7)
		Eventually(func() int { return len(p.busy(ctx)) }).WithContext(ctx).Should(Equal(7))
		Expect(before).To(ContainElements(p.busy(ctx)), "no pod waited for a machine to be made")
		Eventually(p.buffered).WithContext(ctx).Should(Equal("3 True Complete"))
		p.rests(ctx, 7, 3, "Complete")

		By("scaling the buffer as any workload")
		kubectl(ctx, "scale", "capacitybuffer", p.name, "--replicas=4")
		Eventually(p.buffered).WithContext(ctx).Should(Equal("4 True Complete"))
		p.rests(ctx, 7, 4, "Complete")

		By("deleting the buffer")
		Expect(machines.CapacityBufferV1beta1().CapacityBuffers(namespace).Delete(ctx, p.name, metav1.DeleteOptions{})).To(Succeed())
		p.settles(ctx, 7)
	})

	It("tells Kueue when pods can start, and when they cannot", func(ctx context.Context) {
		p := newPool(ctx, "kueue", 1, withBounds("1:2"))
		p.work(ctx, 1)
		p.buffer(ctx, 0)
		Eventually(p.bufferIs).WithContext(ctx).WithArguments(v1beta1.ConditionProvisioning).Should(Equal("0 False BufferEmpty"))
		kubectl(ctx, "scale", "capacitybuffer", p.name, "--replicas=1")
		Eventually(p.bufferIs).WithContext(ctx).WithArguments(v1beta1.ConditionProvisioning).Should(Equal("1 True FitsExistingCapacity"))
		kubectl(ctx, "scale", "capacitybuffer", p.name, "--replicas=2")
		Eventually(p.bufferIs).WithContext(ctx).WithArguments(v1beta1.ConditionProvisioning).Should(Equal("2 False RequiresNewCapacity"), "max allows one")
	})

	It("fills once, and is not refilled", func(ctx context.Context) {
		p := newPool(ctx, "once", 1, withBounds("1:8"))
		p.work(ctx, 1)
		p.buffer(ctx, 0, func(b *v1beta1.CapacityBuffer) {
			b.Spec.Replicas, b.Spec.Percentage, b.Spec.RefillStrategy = ptr.To[int32](2), nil, ptr.To(v1beta1.RefillNone)
		})
		Eventually(p.buffered).WithContext(ctx).Should(Equal("2 True Complete"))
		p.moreWork(ctx, 2)
		p.rests(ctx, 2, 1, "Complete")
		p.moreWork(ctx, 3)
		Eventually(p.buffered).WithContext(ctx).Should(Equal("2 True BufferFilled"))
		p.settles(ctx, 3)
	})

	It("uses free room on machines that serve, and the reserve in its place when pods take it", func(ctx context.Context) {
		p := newPool(ctx, "free", 2, withBounds("1:8"))
		p.work(ctx, 1)
		Eventually(p.nodes).WithContext(ctx).Should(And(HaveLen(2), HaveEach(HaveField("Spec.Taints", BeEmpty()))), "room that comes later counts after minutes")
		p.buffer(ctx, 0, func(b *v1beta1.CapacityBuffer) {
			b.Annotations = map[string]string{v1beta1.FreeRoomAnnotation: "true"}
			b.Spec.Replicas, b.Spec.Percentage = ptr.To[int32](1), nil
		})
		Eventually(p.buffered).WithContext(ctx).Should(Equal("1 True Complete"))
		p.settles(ctx, 2)
		p.moreWork(ctx, 2)
		p.rests(ctx, 2, 1, "Complete")
		Eventually(p.buffered).WithContext(ctx).Should(Equal("1 True Complete"))
	})

	It("keeps dedicated machines from a burst of other pods, and its own pods run on them at once", func(ctx context.Context) {
		p := newPool(ctx, "dedicated", 2, withBounds("1:8"))
		p.work(ctx, 2)
		p.dedicate(ctx, 2)
		p.rests(ctx, 2, 2, "Complete")
		owner := namespace + "/Deployment/work-" + p.name
		Eventually(p.owners).WithContext(ctx).Should(And(HaveLen(2), HaveEach(owner)))
		kept, err := p.owners(ctx)
		Expect(err).NotTo(HaveOccurred())

		By("letting other pods wait")
		p.strangers(ctx, 6)
		Eventually(p.nodesOf).WithContext(ctx).WithArguments("strangers").Should(HaveLen(6))
		Consistently(p.nodesOf, 5*time.Second).WithContext(ctx).WithArguments("strangers").Should(HaveEach(""))
		Expect(p.owners(ctx)).To(Equal(kept))

		By("raising replicas by hand, for which a new machine is created")
		p.scale(ctx, 3)
		Eventually(p.nodesOf).WithContext(ctx).WithArguments("strangers").Should(ContainElement(Not(BeEmpty())), "one stranger gets it")
		Expect(p.owners(ctx)).To(Equal(kept))

		By("creating pods of its owner, while other pods have waited longer")
		for _, n := range []int32{3, 4} { // one by one: a pod can lose its nomination when the Node of another one opens
			p.moreWork(ctx, n)
			Eventually(p.nodesOf).WithContext(ctx).WithArguments("work").Should(And(HaveLen(int(n)), Not(ContainElement(""))))
		}
		Expect(p.nodesOf(ctx, "strangers")).To(WithTransform(func(nodes []string) int { return len(slices.Compact(slices.Sorted(slices.Values(nodes)))) }, Equal(2)), "one of them, and none")
		nodes, err := p.nodesOf(ctx, "work")
		Expect(err).NotTo(HaveOccurred())
		Expect(nodes).To(ContainElements(slices.Collect(maps.Keys(kept))))
		Eventually(p.owners).WithContext(ctx).Should(And(HaveLen(2), HaveEach(owner)), "new ones take their place")
	})
})

// balanced makes a Balancer of the work of a pool, which has a scale that selects its pods.
func (p pool) balanced(ctx context.Context, replicas int32) {
	GinkgoHelper()
	b := &balancer.Balancer{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	b.Spec = balancer.BalancerSpec{Replicas: &replicas, Policy: balancer.BalancerPolicy{PolicyName: balancer.Even}, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"work": p.name}}}
	target := func(name string) balancer.BalancerTarget {
		return balancer.BalancerTarget{Name: name, ScaleTargetRef: balancer.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name + "-" + p.name}}
	}
	b.Spec.Targets = []balancer.BalancerTarget{target("work"), target("none")} // which must be two
	b.Spec.Targets[1].MaxReplicas = ptr.To(intstr.FromInt32(0))
	balancers := machines.BalancerV1alpha1().Balancers(namespace)
	_, err := balancers.Create(ctx, b, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(balancers.Delete(ctx, p.name, metav1.DeleteOptions{})).To(Succeed())
	})
}

// mayReadScales grants the manager the right to read the scales of Balancers.
func mayReadScales(ctx context.Context) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "read-scales"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{balancer.GroupName}, Resources: []string{"balancers/scale"}, Verbs: []string{"get"}},
	}}
	_, err := kube.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: chart.Namespace, Name: mcm}}}
	_, err = kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.RbacV1().ClusterRoles().Delete(ctx, role.Name, metav1.DeleteOptions{})).To(Succeed())
		Expect(kube.RbacV1().ClusterRoleBindings().Delete(ctx, role.Name, metav1.DeleteOptions{})).To(Succeed())
	})
}

var _ = Describe("A CapacityBuffer for a workload of another kind", Label("ours", "long"), func() {
	It("names the right that is missing, and then has chunks like the newest pod", func(ctx context.Context) {
		p := newPool(ctx, "scaled", 2, withBounds("1:8"))
		p.work(ctx, 2)
		p.balanced(ctx, 2)
		p.buffer(ctx, 50, func(b *v1beta1.CapacityBuffer) {
			b.Spec.ScalableRef = &v1beta1.ScalableRef{APIGroup: balancer.GroupName, Kind: "Balancer", Name: p.name}
		})
		Eventually(func() (string, error) {
			b, err := machines.CapacityBufferV1beta1().CapacityBuffers(namespace).Get(ctx, p.name, metav1.GetOptions{})
			if c := meta.FindStatusCondition(b.Status.Conditions, v1beta1.ConditionReadyForProvisioning); c != nil {
				return c.Reason + ": " + c.Message, err
			}
			return "", err
		}).WithContext(ctx).Should(And(HavePrefix("RightMissing: "), ContainSubstring("resources: [balancers/scale], verbs: [get]")))
		mayReadScales(ctx)
		Eventually(p.buffered).WithContext(ctx).Should(Equal("1 True Complete"))
		p.rests(ctx, 2, 1, "Complete")
	})
})
