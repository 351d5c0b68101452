// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// runBuffers runs the controller until the spec ends.
func runBuffers(config *rest.Config) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	ours, core := versioned.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config)
	machines, nodes, shapes := stores.New(ours, "default"), target.New(core, nil), capacitybuffer.NewShapes(core, nil)
	buffers := externalversions.NewSharedInformerFactoryWithOptions(ours, 0, externalversions.WithTransform(capacitybuffer.StripBuffer))
	asked := externalversions.NewSharedInformerFactoryWithOptions(ours, 0, externalversions.WithNamespace("default"))
	c, err := capacitybuffer.New(capacitybuffer.Clients{Buffers: ours.CapacityBufferV1beta1(), Reserves: ours.AutoscalingV1alpha1()},
		capacitybuffer.Informers{
			Buffers: buffers.CapacityBuffer().V1beta1().CapacityBuffers().Informer(), Reserves: asked.Autoscaling().V1alpha1().Reserves().Informer(),
			Machines: machines, Target: nodes, Shapes: shapes,
		}, capacitybuffer.Options{Namespace: "default"})
	Expect(err).NotTo(HaveOccurred())
	machines.Start(ctx)
	nodes.Start(ctx)
	buffers.StartWithContext(ctx)
	asked.StartWithContext(ctx)
	shapes.StartWithContext(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	DeferCleanup(func() {
		cancel()
		Eventually(ended, 5*time.Second).Should(BeClosed())
		machines.Shutdown()
		nodes.Shutdown()
		buffers.Shutdown()
		asked.Shutdown()
		shapes.Shutdown()
	})
}

// createLarge creates a MachineDeployment with bounds, whose machines have four CPUs.
func createLarge(ctx context.Context, ours versioned.Interface, name string) {
	GinkgoHelper()
	deployments, classes := ours.MachineV1alpha1().MachineDeployments("default"), ours.MachineV1alpha1().MachineClasses("default")
	_, err := classes.Create(ctx, &mcm.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Provider: "virtual", SecretRef: &corev1.SecretReference{}, ProviderSpec: runtime.RawExtension{Raw: []byte("{}")},
		NodeTemplate: &mcm.NodeTemplate{InstanceType: "large", Region: "here", Zone: "a", Capacity: corev1.ResourceList{
			"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "gpu": resource.MustParse("0"),
		}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	d := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: map[string]string{machine.BoundsAnnotation: "0:9"}},
		Spec: machine.MachineDeploymentSpec{StockMachineDeploymentSpec: fixture.MachineDeployment(name, 1).Spec}}
	d.Spec.Template.Spec.Class = mcm.ClassSpec{Kind: "MachineClass", Name: name}
	_, err = deployments.Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(deployments.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Expect(classes.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
}

var _ = Describe("A CapacityBuffer", func() {
	It("gets machines through a Reserve by a controller that works as its service account", func(ctx context.Context) {
		Expect(cluster.Apply(ctx, "kubernetes/optional-crds")).To(Succeed())
		ours := versioned.NewForConfigOrDie(cluster.Config())
		createLarge(ctx, ours, "large")
		example, err := os.ReadFile(filepath.Join("../..", "examples/capacity-buffer.yaml"))
		Expect(err).NotTo(HaveOccurred())
		out, err := kubectl(string(example), "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		out, err = kubectl("", "label", "cb", "web", "-n", "shop", "team=shop")
		Expect(err).NotTo(HaveOccurred(), out)
		runReserves(alone(ctx, "reserves"))
		runBuffers(alone(ctx, "capacitybuffer"))

		requested := func(ctx context.Context) (string, error) {
			d, err := ours.MachineV1alpha1().MachineDeployments("default").Get(ctx, "large", metav1.GetOptions{})
			return d.Annotations[machine.RequestedExcessAnnotation], err
		}
		Eventually(ctx, requested, time.Minute).Should(Equal("capacity-buffers.large=1"))
		buffer, err := ours.CapacityBufferV1beta1().CapacityBuffers("shop").Get(ctx, "web", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(buffer.Labels).To(HaveKeyWithValue("team", "shop"), "a status is written, and nothing else")
		Expect(meta.FindStatusCondition(buffer.Status.Conditions, v1beta1.ConditionReady).Reason).To(Equal("Growing"))
		out, err = kubectl("", "get", "cb", "-n", "shop")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(MatchRegexp(`(?s)STRATEGY +CHUNKS +READY +REASON.*web +evenkeel.dev/reserved +2 +False +Growing`))

		out, err = kubectl("", "scale", "deployment", "web", "-n", "shop", "--replicas=21")
		Expect(err).NotTo(HaveOccurred(), out)
		Eventually(ctx, requested, time.Minute).Should(Equal("capacity-buffers.large=2"))
		out, err = kubectl("", "delete", "cb", "web", "-n", "shop")
		Expect(err).NotTo(HaveOccurred(), out)
		Eventually(ctx, requested, time.Minute).Should(BeEmpty())
		_, err = ours.AutoscalingV1alpha1().Reserves("default").Get(ctx, plan.ReserveName("large"), metav1.GetOptions{})
		Expect(err).To(MatchError(apierrors.IsNotFound, "not found"))
	})
})
