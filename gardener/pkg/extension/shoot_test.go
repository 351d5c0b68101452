// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"slices"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	reconcilerutils "github.com/gardener/gardener/pkg/controllerutils/reconciler"
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machines "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/pkg/accepted"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
	"github.com/evenkeel/evenkeel/internal/drain"
	"github.com/evenkeel/evenkeel/test/sim"
)

// shoot is what is on a seed for one Shoot, and the actuator under test.
type shoot struct {
	*actuator
	ex *extensionsv1alpha1.Extension
	// sim has the kinds of machine-controller-manager.
	sim  *sim.Server
	time *clocktesting.FakeClock
	// late has the webhook act on a state from before the drain.
	late bool
}

// newShoot has a Shoot with the worker shop, a Deployment as gardenlet writes it, and an Extension.
func newShoot(ctx context.Context, config string, change ...func(*gardencorev1beta1.Shoot)) *shoot {
	GinkgoHelper()
	s := &gardencorev1beta1.Shoot{
		TypeMeta: metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"},
		Spec:     gardencorev1beta1.ShootSpec{Provider: gardencorev1beta1.Provider{Workers: []gardencorev1beta1.Worker{{Name: "shop", Minimum: 3, Maximum: 9}}}},
	}
	for _, c := range change {
		c(s)
	}
	cluster := &extensionsv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: extensionsv1alpha1.ClusterSpec{Shoot: runtime.RawExtension{Object: s}},
	}
	ex := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "evenkeel"}}
	c := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(cluster, ex, newDeployment()).WithStatusSubresource(ex).Build()
	server := sim.New(sim.Options{Seed: 1, Resources: slices.Concat(sim.Core, sim.Machine, reserveKind)})
	DeferCleanup(server.Close)
	made := &shoot{ex: ex, sim: server, time: clocktesting.NewFakeClock(time.Now())}
	made.actuator = &actuator{
		client: interceptor.NewClient(c, interceptor.Funcs{Patch: made.patch}), reader: c, clock: made.time,
		drains: func(namespace string) (*drain.Drain, error) {
			return drain.New(server.ConfigFor("user"), namespace, "test")
		},
		reserves: func(namespace string) (autoscalingclient.ReserveInterface, error) {
			return machines.NewForConfigOrDie(server.ConfigFor("user")).AutoscalingV1alpha1().Reserves(namespace), nil
		},
		pause: func(context.Context) error { return nil },
	}
	made.configure(ctx, config)
	return made
}

// patch is a write with the webhook in between.
func (s *shoot) patch(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := c.Patch(ctx, object, patch, options...); err != nil {
		return err
	}
	d, ok := object.(*appsv1.Deployment)
	if !ok || !s.late {
		return nil
	}
	if err := (mutation.Manager{Image: "ours", Accounting: api.AccountingInclusive}).Apply(d); err != nil {
		return err
	}
	return c.Update(ctx, d)
}

// newDeployment is what gardenlet writes, in short.
func newDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: mutation.DeploymentName},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "provider", Image: "provider"}, {Name: mutation.DeploymentName, Image: gardens, Command: []string{"./machine-controller-manager"}},
		}}}},
		Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1},
	}
}

// configure writes a providerConfig, as gardenlet does. The Extension is read again, as the library does.
func (s *shoot) configure(ctx context.Context, config string) {
	GinkgoHelper()
	s.reload(ctx)
	s.ex.Spec.ProviderConfig = nil
	if config != "" {
		s.ex.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(config)}
	}
	Expect(s.client.Update(ctx, s.ex)).To(Succeed())
}

func (s *shoot) reload(ctx context.Context) {
	GinkgoHelper()
	Expect(s.client.Get(ctx, client.ObjectKeyFromObject(s.ex), s.ex)).To(Succeed())
}

// state is what is in the API server, not in memory.
func (s *shoot) state(ctx context.Context) *accepted.State {
	GinkgoHelper()
	s.reload(ctx)
	state, err := accepted.Read(s.ex)
	Expect(err).NotTo(HaveOccurred())
	return state
}

func (s *shoot) condition(ctx context.Context) gardencorev1beta1.Condition {
	GinkgoHelper()
	s.reload(ctx)
	Expect(s.ex.Status.Conditions).To(HaveLen(1))
	return s.ex.Status.Conditions[0]
}

func (s *shoot) deployment(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	Expect(s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: mutation.DeploymentName}, d)).To(Succeed())
	return d
}

func (s *shoot) image(ctx context.Context) string {
	GinkgoHelper()
	return s.deployment(ctx).Spec.Template.Spec.Containers[1].Image
}

// install has gardenlet write the Deployment through the webhook.
func (s *shoot) install(ctx context.Context) {
	GinkgoHelper()
	d := s.deployment(ctx)
	Expect(mutation.Manager{Image: "ours", Accounting: api.AccountingInclusive}.Apply(d)).To(Succeed())
	Expect(s.client.Update(ctx, d)).To(Succeed())
}

// rollOut sets how many pods run the latest template.
func (s *shoot) rollOut(ctx context.Context, updated int32) {
	GinkgoHelper()
	d := s.deployment(ctx)
	d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: updated}
	Expect(s.client.Status().Update(ctx, d)).To(Succeed())
}

// pool makes a MachineDeployment with one machine that serves and some in reserve.
func (s *shoot) pool(ctx context.Context, reserve int) {
	GinkgoHelper()
	ours, theirs := machines.NewForConfigOrDie(s.sim.ConfigFor("test")), stock.NewForConfigOrDie(s.sim.ConfigFor("test"))
	d := &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}}
	d.Spec.Replicas = 1
	if reserve > 0 {
		d.Annotations = map[string]string{api.AppliedExcessAnnotation: "1"}
	}
	d, err := ours.MachineV1alpha1().MachineDeployments(namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	set, err := theirs.MachineV1alpha1().MachineSets(namespace).Create(ctx, &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "shop", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, mcm.SchemeGroupVersion.WithKind("MachineDeployment"))},
	}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for i := range reserve + 1 {
		m := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "shop-" + string(rune('a'+i)), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, mcm.SchemeGroupVersion.WithKind("MachineSet"))},
		}}
		if i > 0 {
			m.Annotations = map[string]string{api.ReserveAnnotation: "{}"}
		}
		_, err := theirs.MachineV1alpha1().Machines(namespace).Create(ctx, m, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// shrink has Evenkeel drain the reserve.
func (s *shoot) shrink(ctx context.Context) {
	GinkgoHelper()
	ours, theirs := machines.NewForConfigOrDie(s.sim.ConfigFor("test")), stock.NewForConfigOrDie(s.sim.ConfigFor("test"))
	Expect(theirs.MachineV1alpha1().Machines(namespace).Delete(ctx, "shop-b", metav1.DeleteOptions{})).To(Succeed())
	d, err := ours.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, "shop", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	delete(d.Annotations, api.AppliedExcessAnnotation)
	_, err = ours.MachineV1alpha1().MachineDeployments(namespace).Update(ctx, d, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// drained reports whether the MachineDeployment is asked to have no reserve.
func (s *shoot) drained(ctx context.Context) bool {
	GinkgoHelper()
	ours := machines.NewForConfigOrDie(s.sim.ConfigFor("test"))
	d, err := ours.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, "shop", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return d.Annotations[api.DrainReserveAnnotation] == "true"
}

func beLater(message string) OmegaMatcher {
	return Satisfy(func(err error) bool {
		var again *reconcilerutils.RequeueAfterError
		return errors.As(err, &again) && again.RequeueAfter > 0 && again.Cause != nil && contains(again.Cause.Error(), message)
	})
}

func contains(text, part string) bool {
	matches, _ := ContainSubstring(part).Match(text)
	return matches
}
