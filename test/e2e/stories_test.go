// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

var _ = Describe("A pool", func() {
	It("grows and shrinks", func(ctx context.Context) {
		p := newPool(ctx, "scaled", 3)
		p.settles(ctx, 3)
		before := namesOf(p.machines(ctx))
		p.scale(ctx, 8)
		p.settles(ctx, 8)
		Expect(namesOf(p.machines(ctx))).To(ContainElements(before), "growth replaces nothing")
		eight := namesOf(p.machines(ctx))
		p.scale(ctx, 2)
		p.settles(ctx, 2)
		Expect(eight).To(ContainElements(namesOf(p.machines(ctx))), "shrinking makes nothing")
	})

	It("runs pods on its nodes", func(ctx context.Context) {
		p := newPool(ctx, "worked", 2)
		p.settles(ctx, 2)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "worker"},
			Spec: corev1.PodSpec{
				NodeSelector:                  map[string]string{corev1.LabelTopologyZone: p.name},
				TerminationGracePeriodSeconds: new(int64),
				Containers:                    []corev1.Container{{Name: "main", Image: "none"}},
			},
		}
		_, err := kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (corev1.PodPhase, error) {
			got, err := kube.CoreV1().Pods(namespace).Get(ctx, "worker", metav1.GetOptions{})
			return got.Status.Phase, err
		}).Should(Equal(corev1.PodRunning))

		p.scale(ctx, 0)
		p.settles(ctx, 0)
		_, err = kube.CoreV1().Pods(namespace).Get(ctx, "worker", metav1.GetOptions{})
		Expect(err).To(HaveOccurred(), "the pod was drained with its node")
	})

	It("rolls to a new class, one machine at a time, and never below its replicas", func(ctx context.Context) {
		p := newPool(ctx, "rolled", 3)
		p.settles(ctx, 3)
		old := namesOf(p.machines(ctx))
		p.newClass(ctx, "rolled-2")
		p.patch(ctx, `{"spec":{"template":{"spec":{"class":{"name":"rolled-2"}}}}}`)
		Eventually(func(g Gomega) {
			list, err := p.machines(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			Expect(len(serving(list))).To(BeNumerically(">=", 3), "maxUnavailable is 0")
			g.Expect(p.settled(ctx, 3)).To(Succeed())
			g.Expect(namesOf(list, nil)).NotTo(ContainElements(old))
		}).Should(Succeed())
		for _, m := range must(p.machines(ctx)) {
			Expect(m.Spec.Class.Name).To(Equal("rolled-2"))
			Expect(old).NotTo(ContainElement(m.Name))
		}
	})

	It("takes a new label of its node template in place", func(ctx context.Context) {
		p := newPool(ctx, "relabelled", 3)
		p.settles(ctx, 3)
		before := namesOf(p.machines(ctx))
		p.patch(ctx, `{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"colour":"blue"}}}}}}}`)
		Eventually(func(g Gomega) {
			nodes, err := p.nodes(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(nodes).To(HaveLen(3))
			for _, node := range nodes {
				g.Expect(node.Labels).To(HaveKeyWithValue("colour", "blue"))
			}
		}).Should(Succeed())
		p.settles(ctx, 3)
		Expect(namesOf(p.machines(ctx))).To(ConsistOf(before), "no machine was replaced")
	})

	It("waits for a zone without capacity, and grows when the zone has some", func(ctx context.Context) {
		p := newPool(ctx, "outage", 2)
		p.settles(ctx, 2)
		setFault(ctx, "zones", p.name, "outage: true")
		p.scale(ctx, 4)
		Eventually(func(g Gomega) {
			list, err := p.machines(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(list).To(HaveLen(4))
			for _, m := range list {
				if m.Status.CurrentStatus.Phase != "Running" {
					g.Expect(m.Status.CurrentStatus.Phase).To(BeEquivalentTo("CrashLoopBackOff"))
					g.Expect(m.Status.LastOperation.ErrorCode).To(Equal("ResourceExhausted"))
				}
			}
			g.Expect(serving(list)).To(HaveLen(2))
		}).Should(Succeed())
		setFault(ctx, "zones", p.name, "")
		p.settles(ctx, 4)
	})

	It("replaces a machine that failed", func(ctx context.Context) {
		p := newPool(ctx, "died", 3, repairedAfter(5*time.Second))
		p.settles(ctx, 3)
		victim := namesOf(p.machines(ctx))[0]
		setFault(ctx, "machines", victim, "dead: true")
		Eventually(func() ([]string, error) { return namesOf(p.machines(ctx)), nil }).ShouldNot(ContainElement(victim))
		p.settles(ctx, 3)
	})
})

// repairedAfter sets how long a machine may be unhealthy until it is replaced.
func repairedAfter(d time.Duration) func(*machine.MachineDeployment) {
	return func(md *machine.MachineDeployment) {
		md.Spec.Template.Spec.MachineConfiguration = &machine.MachineConfiguration{MachineHealthTimeout: &metav1.Duration{Duration: d}}
	}
}

func namesOf(list []machine.Machine, err error) []string {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	return names
}

func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}

// serving are the machines that run and are not being deleted.
func serving(list []machine.Machine) []string {
	var names []string
	for _, m := range list {
		if m.Status.CurrentStatus.Phase == "Running" && m.DeletionTimestamp == nil {
			names = append(names, m.Name)
		}
	}
	return names
}
