// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"fmt"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// pool is one MachineDeployment, alone in a zone of its own. Pods choose it by workers, its instance type: a label that Nodes have when they
// register. What machine-controller-manager adds to them follows seconds later, and until then cluster-autoscaler finds no room there and raises again.
type pool struct {
	name, workers string
	// cpus is how many each machine has.
	cpus int
	// boot is how long one boots, as the virtual provider has it; empty is about a second.
	boot string
}

// newPool makes a pool of machines with 4 CPUs.
func newPool(ctx context.Context, name, workers, bounds string, replicas int32) pool {
	GinkgoHelper()
	p := pool{name: name, workers: workers, cpus: 4}
	p.create(ctx, bounds, replicas)
	return p
}

func (p pool) create(ctx context.Context, bounds string, replicas int32) {
	GinkgoHelper()
	name := p.name
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"userData": "none"}}
	_, err := kube.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	p.newClass(ctx, name)
	DeferCleanup(func(ctx context.Context) {
		Expect(ours.MachineClasses(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
	md := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{machine.BoundsAnnotation: bounds}}}
	md.Spec.Replicas, md.Spec.Selector = replicas, &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
	md.Spec.Strategy = machine.MachineDeploymentStrategy{Type: "RollingUpdate", RollingUpdate: &machine.RollingUpdateMachineDeployment{
		UpdateConfiguration: machine.UpdateConfiguration{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}}
	md.Spec.Template.Labels = map[string]string{"name": name}
	md.Spec.Template.Spec.Class = machine.ClassSpec{Kind: "MachineClass", Name: name}
	_, err = ours.MachineDeployments(namespace).Create(ctx, md, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.remove)
}

// remove a pool and wait until nothing of it is left: the next spec's autoscaler looks at all Nodes.
func (p pool) remove(ctx context.Context) {
	Expect(ours.MachineDeployments(namespace).Delete(ctx, p.name, metav1.DeleteOptions{})).To(Succeed())
	Eventually(func() ([]machine.Machine, error) { return p.machines(ctx) }).Should(BeEmpty())
}

func (p pool) newClass(ctx context.Context, name string) {
	GinkgoHelper()
	cpus, boot := fmt.Sprint(p.cpus), `{"from":"500ms","to":"1500ms"}`
	if p.boot != "" {
		boot = strconv.Quote(p.boot)
	}
	spec := fmt.Sprintf(`{"zone":%q,"region":"local","instanceType":%q,"capacity":{"cpu":%q,"memory":"16Gi"},"bootDelay":%s}`, p.name, p.workers, cpus, boot)
	_, err := ours.MachineClasses(namespace).Create(ctx, &machine.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provider: "virtual", ProviderSpec: runtime.RawExtension{Raw: []byte(spec)},
		SecretRef: &corev1.SecretReference{Name: p.name, Namespace: namespace},
		NodeTemplate: &machine.NodeTemplate{
			Capacity:     corev1.ResourceList{"cpu": resource.MustParse(cpus), "gpu": resource.MustParse("0"), "memory": resource.MustParse("16Gi")},
			InstanceType: p.workers, Region: "local", Zone: p.name, Architecture: ptr.To("amd64"),
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (p pool) patch(ctx context.Context, format string, args ...any) {
	GinkgoHelper()
	_, err := ours.MachineDeployments(namespace).Patch(ctx, p.name, types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (p pool) replicas(ctx context.Context) (int32, error) {
	md, err := ours.MachineDeployments(namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return -1, err
	}
	return md.Spec.Replicas, nil
}

func (p pool) machines(ctx context.Context) ([]machine.Machine, error) {
	list, err := ours.Machines(namespace).List(ctx, metav1.ListOptions{LabelSelector: "name=" + p.name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// counts are replicas, machines that serve and run, machines in reserve that run, and all others, as in "R3 2+1+1".
func (p pool) counts(ctx context.Context) string {
	replicas, err := p.replicas(ctx)
	if err != nil {
		return err.Error()
	}
	list, err := p.machines(ctx)
	if err != nil {
		return err.Error()
	}
	serving, reserve, others := 0, 0, 0
	for _, m := range list {
		_, marked := m.Annotations[machine.ReserveAnnotation]
		switch {
		case m.Status.CurrentStatus.Phase != "Running" || m.DeletionTimestamp != nil:
			others++
		case marked:
			reserve++
		default:
			serving++
		}
	}
	return fmt.Sprintf("R%d %d+%d+%d", replicas, serving, reserve, others)
}

// becomes waits for counts.
func (p pool) becomes(ctx context.Context, want string) {
	GinkgoHelper()
	By(p.name + " becomes " + want)
	Eventually(func() string { return p.counts(ctx) }).WithContext(ctx).Should(Equal(want))
}

// wants waits for replicas; it may take half a minute more until machines that go are gone.
func (p pool) wants(ctx context.Context, replicas int32) {
	GinkgoHelper()
	By(fmt.Sprintf("%s wants %d", p.name, replicas))
	Eventually(func() (int32, error) { return p.replicas(ctx) }).WithContext(ctx).Should(Equal(replicas))
}

// settled waits until all Nodes of these workers have been ready for more than a minute: before that they are no template.
func settled(ctx context.Context, workers string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelInstanceTypeStable + "=" + workers})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).NotTo(BeEmpty())
		for _, n := range list.Items {
			g.Expect(n.Status.Conditions).To(ContainElement(And(
				HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue),
				HaveField("LastTransitionTime.Time", BeTemporally("<", time.Now().Add(-65*time.Second))))))
		}
	}).WithContext(ctx).Should(Succeed())
}
