// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/controller/worker"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/component/nodemanagement/machinecontrollermanager"
	fakesecrets "github.com/gardener/gardener/pkg/utils/secrets/manager/fake"
)

// shoot is what gardenlet and a provider extension keep of one Shoot on the seed. There is one at a time: all Nodes are its.
type shoot struct {
	namespace string
	image     string
	worker    *extensionsv1alpha1.Worker
	cluster   *extensionscontroller.Cluster
	actuator  worker.Actuator
	// sidecar is the provider's container; default: that of the virtual provider.
	sidecar sidecar
	kubelet *kubelet
	removed bool
}

// newShoot makes the control plane of a Shoot with these pools, and no machine yet.
func newShoot(ctx context.Context, name, image string, pools ...extensionsv1alpha1.WorkerPool) *shoot {
	GinkgoHelper()
	s := prepareShoot(ctx, name, image, pools...)
	s.begin(ctx)
	return s
}

// begin makes the control plane of a Shoot that was prepared.
func (s *shoot) begin(ctx context.Context) {
	GinkgoHelper()
	s.write(ctx)
	applyManagedResource(ctx, s.namespace, "shoot-core-machine-controller-manager")
	s.kubelet = startKubelet(ctx, s.namespace, s.sidecar)
	DeferCleanup(s.remove)
}

// writeShoot creates the objects that gardenlet writes for a Shoot. No process of the Shoot is started.
func writeShoot(ctx context.Context, name, image string, pools ...extensionsv1alpha1.WorkerPool) *shoot {
	GinkgoHelper()
	s := prepareShoot(ctx, name, image, pools...)
	s.write(ctx)
	return s
}

func (s *shoot) write(ctx context.Context) {
	GinkgoHelper()
	Expect(seed.Create(ctx, s.worker)).To(Succeed())
	s.deploy(ctx, 1)
}

// prepareShoot makes what is there before the first extension is asked for anything.
func prepareShoot(ctx context.Context, name, image string, pools ...extensionsv1alpha1.WorkerPool) *shoot {
	GinkgoHelper()
	s := &shoot{namespace: "shoot--local--" + name, image: image}
	Expect(seed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: s.namespace, Labels: map[string]string{v1beta1constants.GardenRole: v1beta1constants.GardenRoleShoot},
	}})).To(Succeed())
	s.secret(ctx, v1beta1constants.SecretNameGenericTokenKubeconfig, "kubeconfig")
	s.secret(ctx, v1beta1constants.SecretNameCloudProvider, "none")
	s.secret(ctx, userData, userDataKey)
	s.cluster = newCluster(s.namespace, name)
	s.saveCluster(ctx)
	s.worker = newWorker(s.namespace, name, pools)
	s.actuator, s.sidecar = newActuator(forVirtual), virtualProvider
	return s
}

func (s *shoot) secret(ctx context.Context, name, key string) {
	GinkgoHelper()
	Expect(seed.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, StringData: map[string]string{key: "none"},
	})).To(Succeed())
}

// deploy has Gardener deploy machine-controller-manager.
func (s *shoot) deploy(ctx context.Context, replicas int32) {
	GinkgoHelper()
	component := machinecontrollermanager.New(seed, s.namespace, fakesecrets.New(seed, s.namespace), machinecontrollermanager.Values{Image: s.image, Replicas: replicas})
	Expect(component.Deploy(ctx)).To(Succeed())
}

// swap is what an entry in gardenlet's image vector does at the next reconcile: the Deployment has another image.
func (s *shoot) swap(ctx context.Context, image string) {
	GinkgoHelper()
	s.image = image
	s.deploy(ctx, 1)
	Eventually(func() bool {
		pods := s.kubelet.running()
		return len(pods) == 1 && pods[0].image == image
	}).WithContext(ctx).Should(BeTrue())
}

// reconcile is a reconcile of the Worker by its extension. It returns what the extension would report, after its own patience or
// that of the context.
func (s *shoot) reconcile(ctx context.Context) error {
	if err := seed.Get(ctx, client.ObjectKeyFromObject(s.worker), s.worker); err != nil {
		return err
	}
	return s.actuator.Reconcile(ctx, GinkgoLogr, s.worker, s.cluster)
}

// update changes the Worker's spec, as gardenlet does for a changed Shoot.
func (s *shoot) update(ctx context.Context, change func(*extensionsv1alpha1.WorkerSpec)) {
	GinkgoHelper()
	Expect(seed.Get(ctx, client.ObjectKeyFromObject(s.worker), s.worker)).To(Succeed())
	patch := client.MergeFrom(s.worker.DeepCopy())
	change(&s.worker.Spec)
	Expect(seed.Patch(ctx, s.worker, patch)).To(Succeed())
}

// remove deletes the Worker, by the extension, and with it all machines: the Shoot that comes next finds no Nodes.
func (s *shoot) remove(ctx context.Context) {
	if s.removed {
		return
	}
	s.removed = true
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	s.hibernation(ctx, false, false)
	s.deploy(ctx, 1)
	Expect(seed.Get(ctx, client.ObjectKeyFromObject(s.worker), s.worker)).To(Succeed())
	Expect(s.actuator.Delete(ctx, GinkgoLogr, s.worker, s.cluster)).To(Succeed())
	var nodes corev1.NodeList
	Eventually(func() ([]corev1.Node, error) { return nodes.Items, target.List(ctx, &nodes) }).WithContext(ctx).Should(BeEmpty())
	s.kubelet.shutdown()
}

func (s *shoot) deployments(ctx context.Context) []machinev1alpha1.MachineDeployment {
	GinkgoHelper()
	var list machinev1alpha1.MachineDeploymentList
	Expect(seed.List(ctx, &list, client.InNamespace(s.namespace))).To(Succeed())
	return list.Items
}

func (s *shoot) machines(ctx context.Context) []machinev1alpha1.Machine {
	GinkgoHelper()
	var list machinev1alpha1.MachineList
	Expect(seed.List(ctx, &list, client.InNamespace(s.namespace))).To(Succeed())
	return list.Items
}
