// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// A real control plane and the real binary.
var _ = Describe("On a cluster", Ordered, func() {
	const (
		namespace = "default"
		boot      = 5 * time.Second
		soon      = 30 * time.Second
		deletion  = 90 * time.Second
	)
	var (
		cluster  *localcluster.Cluster
		process  *localcluster.Process
		core     kubernetes.Interface
		machines versioned.Interface
	)

	BeforeAll(func(ctx SpecContext) {
		var err error
		cluster, err = localcluster.Start(ctx, localcluster.Options{
			Name: fmt.Sprintf("mc-%08x", rand.Uint32()), UnsafeNoFsync: true, Out: GinkgoWriter,
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(cluster.Reset()).To(Succeed()) })
		core, machines = kubernetes.NewForConfigOrDie(cluster.Config()), versioned.NewForConfigOrDie(cluster.Config())
		for _, kind := range []string{"machines", "machineclasses"} {
			Expect(cluster.Apply(ctx, "kubernetes/crds/machine.sapcloud.io_"+kind+".yaml")).To(Succeed())
		}
		process, err = cluster.RunProgram(ctx, localcluster.Program{Name: "machine-controller", Flags: []string{
			"--v=2", "--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=1s",
		}})
		Expect(err).NotTo(HaveOccurred())

		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pool"}, Data: map[string][]byte{"userData": []byte("none")}}
		_, err = core.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		class := &v1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Name: "pool"}, Provider: "virtual",
			SecretRef: &corev1.SecretReference{Name: "pool", Namespace: namespace},
			ProviderSpec: runtime.RawExtension{Raw: fmt.Appendf(nil,
				`{"zone":"z1","region":"r","instanceType":"small","capacity":{"cpu":4,"memory":"16Gi"},"bootDelay":%q}`, boot)},
		}
		_, err = machines.MachineV1alpha1().MachineClasses(namespace).Create(ctx, class, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(3*time.Minute))

	create := func(ctx context.Context, name string) {
		GinkgoHelper()
		machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
		machine.Spec.Class = v1alpha1.ClassSpec{Kind: "MachineClass", Name: "pool"}
		machine.Spec.NodeTemplateSpec.Labels = map[string]string{"example.com/pool": "a"}
		machine.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: "example.com/reserve", Effect: corev1.TaintEffectNoSchedule}}
		_, err := machines.MachineV1alpha1().Machines(namespace).Create(ctx, machine, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	phase := func(ctx context.Context, name string) func() (v1alpha1.MachinePhase, error) {
		return func() (v1alpha1.MachinePhase, error) {
			machine, err := machines.MachineV1alpha1().Machines(namespace).Get(ctx, name, metav1.GetOptions{})
			return machine.Status.CurrentStatus.Phase, err
		}
	}
	node := func(ctx context.Context, name string) func() (*corev1.Node, error) {
		return func() (*corev1.Node, error) { return core.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}) }
	}
	suffer := func(ctx context.Context, faults string) {
		GinkgoHelper()
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: virtual.FaultsConfigMap}, Data: map[string]string{virtual.FaultsKey: faults}}
		_, err := core.CoreV1().ConfigMaps(namespace).Update(ctx, config, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = core.CoreV1().ConfigMaps(namespace).Create(ctx, config, metav1.CreateOptions{})
		}
		Expect(err).NotTo(HaveOccurred())
	}
	ready := func(status corev1.ConditionStatus) OmegaMatcher {
		return HaveField("Status.Conditions", ContainElement(And(HaveField("Type", corev1.NodeReady), HaveField("Status", status))))
	}

	It("a Machine becomes a Node, Ready and tainted from its first moment, which runs pods", func(ctx SpecContext) {
		watch, err := core.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		defer watch.Stop()
		create(ctx, "first")
		first := (<-watch.ResultChan()).Object.(*corev1.Node)
		Expect(first).To(ready(corev1.ConditionTrue))
		Expect(first.Spec.Taints).To(ContainElement(HaveField("Key", "example.com/reserve")))
		Eventually(phase(ctx, "first"), soon).Should(Equal(v1alpha1.MachineRunning))
		Eventually(node(ctx, "first"), soon).Should(HaveField("Labels", HaveKeyWithValue("example.com/pool", "a")), "MCM adds the labels")

		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "i"}}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		}}
		_, err = core.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (*corev1.Pod, error) { return core.CoreV1().Pods(namespace).Get(ctx, "pod", metav1.GetOptions{}) }, soon).
			Should(And(HaveField("Spec.NodeName", "first"), HaveField("Status.Phase", corev1.PodRunning)))
	}, SpecTimeout(2*time.Minute))

	It("a taint that goes from the Machine goes from the Node", func(ctx SpecContext) {
		machine, err := machines.MachineV1alpha1().Machines(namespace).Get(ctx, "first", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		machine.Spec.NodeTemplateSpec.Spec.Taints = nil
		_, err = machines.MachineV1alpha1().Machines(namespace).Update(ctx, machine, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(node(ctx, "first"), soon).Should(HaveField("Spec.Taints", BeEmpty()))
	}, SpecTimeout(time.Minute))

	It("killed in the middle of a boot, it goes on with it", func(ctx SpecContext) {
		create(ctx, "second")
		record := func() error {
			_, err := core.CoreV1().ConfigMaps(namespace).Get(ctx, "virtual-machine-second", metav1.GetOptions{})
			return err
		}
		Eventually(record, soon, 20*time.Millisecond).Should(Succeed())
		Expect(process.Kill()).To(Succeed())
		Expect(process.Start()).To(Succeed())
		Eventually(phase(ctx, "second"), time.Minute).Should(Equal(v1alpha1.MachineRunning))
		records, err := core.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: virtual.RecordLabel})
		Expect(err).NotTo(HaveOccurred())
		Expect(records.Items).To(HaveLen(2))
	}, SpecTimeout(2*time.Minute))

	It("a node is cut off and comes back", func(ctx SpecContext) {
		suffer(ctx, "machines: {second: {ready: Unknown}}")
		Eventually(phase(ctx, "second"), soon).Should(Equal(v1alpha1.MachineUnknown))
		Consistently(node(ctx, "second"), 3*time.Second).Should(ready(corev1.ConditionUnknown))
		Expect(node(ctx, "first")()).To(ready(corev1.ConditionTrue))
		suffer(ctx, "")
		Eventually(phase(ctx, "second"), soon).Should(Equal(v1alpha1.MachineRunning))
		Consistently(node(ctx, "second"), 3*time.Second).Should(ready(corev1.ConditionTrue))
	}, SpecTimeout(2*time.Minute))

	It("ends within five seconds and lets the lease go", func(ctx SpecContext) {
		from := time.Now()
		Expect(process.Stop()).To(Succeed())
		Expect(time.Since(from)).To(BeNumerically("<", 5*time.Second))
		lease, err := core.CoordinationV1().Leases(namespace).Get(ctx, "machine-controller", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(lease.Spec.HolderIdentity).To(HaveValue(BeEmpty()))
		Expect(process.Start()).To(Succeed())
	}, SpecTimeout(time.Minute))

	It("deleted Machines leave nothing", func(ctx SpecContext) {
		for _, name := range []string{"first", "second"} {
			Expect(machines.MachineV1alpha1().Machines(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		}
		left := func(g Gomega) {
			list, err := machines.MachineV1alpha1().Machines(namespace).List(ctx, metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(list.Items).To(BeEmpty())
			nodes, err := core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(nodes.Items).To(BeEmpty())
			records, err := core.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: virtual.RecordLabel})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(records.Items).To(BeEmpty())
		}
		Eventually(left, deletion, time.Second).Should(Succeed())
	}, SpecTimeout(2*time.Minute))
})
