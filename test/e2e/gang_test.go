// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// gang is a PodGroup whose pods start together, in the zone of a pool.
type gang struct {
	name string
	pool pool
	pods int
}

// gang makes a PodGroup with this many pods, each of which needs a machine unless changed.
func (p pool) gang(ctx context.Context, name string, pods int, changes ...func(*corev1.Pod)) gang {
	GinkgoHelper()
	g := gang{name, p, pods}
	group := &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1alpha2.GangSchedulingPolicy{MinCount: int32(pods)}
	Expect(kube.SchedulingV1alpha2().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{})).NotTo(BeNil())
	for i := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{"gang": name}}}
		pod.Spec = corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelTopologyZone: p.name},
			SchedulingGroup:               &corev1.PodSchedulingGroup{PodGroupName: &name},
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("3")}}}},
		}
		for _, change := range changes {
			change(pod)
		}
		Expect(kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})).NotTo(BeNil())
	}
	DeferCleanup(g.end)
	return g
}

// end deletes the group and its pods; at the second time, nothing.
func (g gang) end(ctx context.Context) {
	GinkgoHelper()
	Expect(kube.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "gang=" + g.name})).To(Succeed())
	Expect(kube.SchedulingV1alpha2().PodGroups(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + g.name})).To(Succeed())
}

// nodes are those of the pods that have one.
func (g gang) nodes(ctx context.Context) (names []string) {
	GinkgoHelper()
	for _, pod := range must(kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "gang=" + g.name})).Items {
		if pod.Spec.NodeName != "" {
			names = append(names, pod.Spec.NodeName)
		}
	}
	return names
}

func (g gang) starts(ctx context.Context) {
	GinkgoHelper()
	Eventually(g.nodes).WithContext(ctx).Should(HaveLen(g.pods))
}

// waits reports an error if a pod of the group starts, or replicas are raised, within a few seconds.
func (g gang) waits(ctx context.Context, replicas int) {
	GinkgoHelper()
	Consistently(func() string { return fmt.Sprint(len(g.nodes(ctx)), " of ", g.pool.replicas(ctx)) }, 3*time.Second).Should(Equal(fmt.Sprint("0 of ", replicas)))
}

func (p pool) setBounds(ctx context.Context, bounds string) {
	GinkgoHelper()
	p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, machine.BoundsAnnotation, bounds))
}

var _ = Describe("A group of pods that start together", Label("ours", "podgroups"), func() {
	It("gets machines for all of them at once", func(ctx context.Context) {
		p := newPool(ctx, "gang-served", 1, withBounds("1:4:3"))
		p.rests(ctx, 1, 3, "Complete")
		p.work(ctx, 1)
		before := namesOf(p.machines(ctx))
		g := p.gang(ctx, "served", 3)
		g.starts(ctx)
		Expect(p.replicas(ctx)).To(Equal(4))
		Expect(before).To(ContainElements(g.nodes(ctx)), "no pod waited for a machine to be created")
	})

	It("gets none as long as one is missing, and all once there are enough", func(ctx context.Context) {
		p := newPool(ctx, "gang-short", 1, withBounds("1:3:3"))
		p.rests(ctx, 1, 2, "AtMax")
		p.work(ctx, 1)
		g := p.gang(ctx, "short", 3)
		g.waits(ctx, 1)
		Expect(kubectl(ctx, "get", "events", "--field-selector=involvedObject.kind=PodGroup,involvedObject.name=short")).
			To(ContainSubstring("3 pods must start together, and the reserve lacks 1 machine of MachineDeployment " + namespace + "/gang-short (zone gang-short, max is 3)"))
		p.setBounds(ctx, "1:4:3")
		g.starts(ctx)
		Expect(p.replicas(ctx)).To(Equal(4))
	})

	It("starts alone if there are machines for one of two, and the other takes none of them", func(ctx context.Context) {
		p := newPool(ctx, "gang-pair", 1, withBounds("1:3:3"))
		p.rests(ctx, 1, 2, "AtMax")
		p.work(ctx, 1)
		pair := []gang{p.gang(ctx, "first", 3), p.gang(ctx, "second", 3)}
		pair[0].waits(ctx, 1)
		pair[1].waits(ctx, 1)
		p.setBounds(ctx, "1:4:3")
		// The scheduler decides which one: of the same priority, it prefers none.
		Eventually(func() int { return max(len(pair[0].nodes(ctx)), len(pair[1].nodes(ctx))) }).WithContext(ctx).Should(Equal(3))
		Consistently(func() int { return len(pair[0].nodes(ctx)) + len(pair[1].nodes(ctx)) }, 3*time.Second).Should(Equal(3))
		Expect(p.replicas(ctx)).To(Equal(4))
	})
})
