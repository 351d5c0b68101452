// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

var _ = Describe("A reserve", Label("ours"), func() {
	It("waits beside the serving machines, serves at once when it is needed, and is deleted without harm", func(ctx context.Context) {
		p := newPool(ctx, "reserved", 3, excess(2))
		p.rests(ctx, 3, 2, "Complete")
		w := p.witness(ctx)
		reserve := p.reserve(ctx)
		expectNewest(must(p.machines(ctx)), reserve)
		Expect(kubectl(ctx, "get", "machine", reserve[0])).To(ContainSubstring("RESERVE"))
		p.expectTaints(ctx)
		Expect(kubectl(ctx, "describe", "machine", reserve[0])).To(MatchRegexp(`Held since \S+; node %s carries the reserve taint`, reserve[0]))
		// A machine that was swapped while it booted still shows when it was released.
		Expect(kubectl(ctx, "describe", "machine", p.serving(ctx)[0])).NotTo(Or(ContainSubstring(machine.ReserveTaintKey), ContainSubstring(machine.ReserveAnnotation+":")))
		Eventually(func() ([]string, error) { return eventsOf(ctx, "Machine", reserve[0]) }).Should(ContainElement("ReserveHeld"))
		p.work(ctx, 3)
		Expect(p.busy(ctx)).To(ConsistOf(p.serving(ctx)))

		By("growing: a node of the reserve takes work before the new machine has a node")
		before := namesOf(p.machines(ctx))
		p.scale(ctx, 4)
		p.moreWork(ctx, 4)
		Eventually(func() int { return len(p.busy(ctx)) }).Should(Equal(4))
		Expect(before).To(ContainElements(p.busy(ctx)))
		p.rests(ctx, 4, 2, "Complete")
		Expect(before).To(ContainElements(p.serving(ctx)))
		p.expectTaints(ctx)
		released := slices.DeleteFunc(p.serving(ctx), func(name string) bool { return !slices.Contains(reserve, name) })
		Expect(released).To(HaveLen(1))
		Expect(kubectl(ctx, "describe", "machine", released[0])).To(MatchRegexp(`Released at \S+ \(Released\); node %s does not carry the reserve taint`, released[0]))
		Eventually(func() ([]string, error) { return eventsOf(ctx, "Machine", released[0]) }).Should(ContainElements("ReserveHeld", "ReserveReleased"))

		By("shrinking: without a name, a serving machine is deleted; with a name, exactly that one")
		reserve = p.reserve(ctx)
		p.moreWork(ctx, 2)
		p.scale(ctx, 3)
		p.rests(ctx, 3, 2, "Complete")
		Expect(p.reserve(ctx)).To(ConsistOf(reserve))
		serving := p.serving(ctx)
		p.shrinkBy(ctx, 2, serving[0])
		p.rests(ctx, 2, 2, "Complete")
		Expect(p.serving(ctx)).To(ConsistOf(serving[1:]))

		By("requesting none: exactly the reserve is deleted, and nothing ever ran there")
		opened := w.opened()
		p.want(ctx, 0)
		p.rests(ctx, 2, 0, "")
		Expect(p.serving(ctx)).To(ConsistOf(serving[1:]))
		Expect(w.opened()).To(Equal(opened))
		Expect(w.crimes).To(BeEmpty())
	})

	It("is created beside busy machines, and removed and requested again at once, without touching one", func(ctx context.Context) {
		p := newPool(ctx, "taken-up", 2)
		p.rests(ctx, 2, 0, "")
		p.work(ctx, 2)
		busy := p.busy(ctx)
		p.want(ctx, 2)
		p.rests(ctx, 2, 2, "Complete")
		Expect(p.busy(ctx)).To(Equal(busy))
		for range 3 {
			p.want(ctx, 0)
			p.want(ctx, 2)
		}
		p.rests(ctx, 2, 2, "Complete")
		Expect(p.busy(ctx)).To(Equal(busy))
	})

	It("replaces a machine that is not ready, and makes room when that machine is ready again", func(ctx context.Context) {
		p := newPool(ctx, "stand-in", 2, excess(1), repairedAfter(10*time.Minute))
		p.rests(ctx, 2, 1, "Complete")
		p.work(ctx, 2)
		w := p.witness(ctx)
		sick, spare := p.serving(ctx)[0], p.reserve(ctx)[0]
		setFault(ctx, "machines", sick, "ready: Unknown")
		Eventually(func() ([]string, error) { serving, _, err := p.split(ctx); return serving, err }).WithContext(ctx).Should(ContainElement(spare))
		setFault(ctx, "machines", sick, "")
		p.rests(ctx, 2, 1, "Complete")
		Expect(w.podsLost()).To(BeZero(), "no pod was evicted")
	})

	It("ends when the owner of its field applies without it, also after a client that does not know the field dropped it", func(ctx context.Context) {
		p := newPool(ctx, "gitops", 2)
		p.rests(ctx, 2, 0, "")
		apply := func(spec string) {
			GinkgoHelper()
			manifest := fmt.Sprintf(`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineDeployment","metadata":{"name":%q},"spec":%s}`, p.name, spec)
			_, err := machines.MachineV1alpha1().MachineDeployments(namespace).Patch(ctx, p.name, types.ApplyPatchType, []byte(manifest), metav1.PatchOptions{FieldManager: "gitops"})
			Expect(err).NotTo(HaveOccurred())
		}
		apply(`{"excessReplicas":1,"minReadySeconds":0}`)
		p.rests(ctx, 2, 1, "Complete")
		stockScales(ctx, p.name, 3)
		p.rests(ctx, 3, 1, "Complete")
		apply(`{"minReadySeconds":0}`)
		p.rests(ctx, 3, 0, "")
		Eventually(func() ([]string, error) { return p.events(ctx) }).Should(ContainElements("ExcessRestored", "ExcessRemoved"))
		apply(`{"excessReplicas":1,"minReadySeconds":0}`)
		p.rests(ctx, 3, 1, "Complete")
		apply(`{"minReadySeconds":0}`)
		p.rests(ctx, 3, 0, "")
	})

	DescribeTable("ends when a user removes its field, also after a client that does not know the field dropped it, with", func(ctx context.Context, verb string, remove func(context.Context, pool)) {
		p := newPool(ctx, "removed-by-"+verb, 1)
		p.apply(ctx, `{"excessReplicas":1}`)
		p.rests(ctx, 1, 1, "Complete")
		stockScales(ctx, p.name, 2)
		p.rests(ctx, 2, 1, "Complete")
		remove(ctx, p)
		p.rests(ctx, 2, 0, "")
		Expect(must(p.deployment(ctx)).Spec.ExcessReplicas).To(BeNil())
		Eventually(func() ([]string, error) { return p.events(ctx) }).Should(ContainElements("ExcessRestored", "ExcessRemoved"))
	},
		Entry("kubectl edit", "edit", func(ctx context.Context, p pool) {
			GinkgoT().Setenv("KUBE_EDITOR", "sed -i -e /excessReplicas:/d")
			kubectl(ctx, "edit", "machinedeployment", p.name)
		}),
		Entry("kubectl patch", "patch", func(ctx context.Context, p pool) {
			kubectl(ctx, "patch", "machinedeployment", p.name, "--type=json", "-p", `[{"op":"remove","path":"/spec/excessReplicas"}]`)
		}),
		Entry("kubectl apply", "apply", func(ctx context.Context, p pool) { p.apply(ctx, "{}") }),
		Entry("kubectl replace", "replace", func(ctx context.Context, p pool) {
			text := kubectl(ctx, "get", "machinedeployment", p.name, "-o", "yaml")
			file := filepath.Join(GinkgoT().TempDir(), "pool.yaml")
			Expect(os.WriteFile(file, []byte(strings.ReplaceAll(text, "  excessReplicas: 1\n", "")), 0o600)).To(Succeed())
			kubectl(ctx, "replace", "-f", file)
		}),
	)

	It("names the client that writes its field in vain while bounds count", func(ctx context.Context) {
		p := newPool(ctx, "contested", 2, func(md *machine.MachineDeployment) {
			md.Annotations = map[string]string{machine.BoundsAnnotation: "1:5:1"}
		})
		p.rests(ctx, 2, 1, "Complete")
		for range 2 {
			p.want(ctx, 3)
			Eventually(func() (string, error) {
				md, err := p.deployment(ctx)
				if err != nil || *md.Spec.ExcessReplicas == 1 {
					return "written over", err
				}
				for _, c := range md.Status.Conditions {
					if c.Type == machine.ReserveReady {
						return c.Message, nil
					}
				}
				return "", nil
			}).Should(Or(Equal("written over"), ContainSubstring("e2e.test writes spec.excessReplicas, which has no effect")))
		}
		Consistently(func() (*int32, error) { md, err := p.deployment(ctx); return md.Spec.ExcessReplicas, err }, "3s").Should(HaveValue(BeEquivalentTo(3)))
		Expect(p.resting(ctx, 2, 1, "Complete")).To(Succeed())
	})

	It("survives a client that does not know its field", func(ctx context.Context) {
		p := newPool(ctx, "wiped", 2, excess(1))
		p.rests(ctx, 2, 1, "Complete")
		before := namesOf(p.machines(ctx))
		stockScales(ctx, p.name, 3)
		Eventually(func() (*int32, error) {
			md, err := p.deployment(ctx)
			return md.Spec.ExcessReplicas, err
		}).Should(HaveValue(BeEquivalentTo(1)))
		p.rests(ctx, 3, 1, "Complete")
		Expect(namesOf(p.machines(ctx))).To(ContainElements(before), "no machine was deleted")
		Eventually(func() ([]string, error) { return p.events(ctx) }).Should(ContainElement("ExcessRestored"))
	})
})

// expectNewest expects that no machine is newer than the reserve, within one second: machines of one batch are created
// at the same time.
func expectNewest(list []machine.Machine, reserve []string) {
	GinkgoHelper()
	var oldest, newest time.Time
	for _, m := range list {
		switch at := m.CreationTimestamp.Time; {
		case !slices.Contains(reserve, m.Name):
			newest = later(newest, at)
		case oldest.IsZero() || at.Before(oldest):
			oldest = at
		}
	}
	Expect(newest).NotTo(BeTemporally(">", oldest.Add(time.Second)))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// shrinkBy names a machine for deletion as an autoscaler does, in one write with fewer replicas.
func (p pool) shrinkBy(ctx context.Context, replicas int, victim string) {
	GinkgoHelper()
	now := time.Now().UTC().Format(time.RFC3339)
	p.patch(ctx, fmt.Sprintf(`{"spec":{"replicas":%d},"metadata":{"annotations":{"node.machine.sapcloud.io/trigger-deletion-by-mcm":"%s~%s","machine.sapcloud.io/last-deployment-replica-change-by-scaler-time":"%s"}}}`,
		replicas, victim, now, now))
}

// expectTaints expects the reserve taint in the template and on the Node of each machine in reserve, and of no other.
func (p pool) expectTaints(ctx context.Context) {
	GinkgoHelper()
	reserve := p.reserve(ctx)
	closed := func(taints []corev1.Taint) bool {
		return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == machine.ReserveTaintKey })
	}
	for _, m := range must(p.machines(ctx)) {
		Expect(closed(m.Spec.NodeTemplateSpec.Spec.Taints)).To(Equal(slices.Contains(reserve, m.Name)), "node template of machine "+m.Name)
	}
	for _, node := range must(p.nodes(ctx)) {
		Expect(closed(node.Spec.Taints)).To(Equal(slices.Contains(reserve, node.Name)), "node "+node.Name)
	}
}

// events are the reasons of those about a pool.
func (p pool) events(ctx context.Context) ([]string, error) {
	return eventsOf(ctx, "MachineDeployment", p.name)
}

func eventsOf(ctx context.Context, kind, name string) ([]string, error) {
	list, err := control.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name})
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, e := range list.Items {
		reasons = append(reasons, e.Reason)
	}
	return reasons, nil
}

// stockScales writes a whole MachineDeployment as a client does that knows machine-controller-manager's own types only.
func stockScales(ctx context.Context, name string, replicas int32) {
	GinkgoHelper()
	client, err := stock.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		md, err := client.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		md.Spec.Replicas = replicas
		_, err = client.MachineV1alpha1().MachineDeployments(namespace).Update(ctx, md, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
}

// apply is kubectl apply of a spec.
func (p pool) apply(ctx context.Context, spec string) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "pool.json")
	manifest := fmt.Sprintf(`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineDeployment","metadata":{"name":%q},"spec":%s}`, p.name, spec)
	Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
	kubectl(ctx, "apply", "-f", file)
}

// kubectl is what a user sees.
func kubectl(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	output, err := exec.CommandContext(ctx, kubectlPath, append([]string{"--kubeconfig", kubeconfigPath}, arguments...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	return string(output)
}
