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

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// aSeed is one of several. All helpers work on the one in use.
type aSeed struct {
	cluster *localcluster.Cluster
	client  client.Client
}

func thisSeed() aSeed { return aSeed{seedCluster, seed} }

// use has nothing run on the other seed that looks at these variables.
func (s aSeed) use() { seedCluster, seed = s.cluster, s.client }

// newSeed starts another control plane, and leaves the one in use there.
func newSeed(ctx context.Context, name string) aSeed {
	GinkgoHelper()
	before := thisSeed()
	defer before.use()
	made := aSeed{cluster: startCluster(ctx, localcluster.Options{Name: name, Components: localcluster.APIServerOnly, Audit: true})}
	made.client = newClient(made.cluster, kubernetes.SeedScheme)
	made.use()
	deployCRDs(ctx)
	return made
}

// luggage is what goes from seed to seed: the ShootState, and the records of the virtual provider, which stand for a cloud that stays
// where it is.
type luggage struct {
	state   *gardencorev1beta1.ShootState
	records []corev1.ConfigMap
}

// leaveSeed is what gardenlet does on the seed that a control plane leaves.
func (s *shoot) leaveSeed(ctx context.Context) luggage {
	GinkgoHelper()
	l := luggage{state: s.shootState(ctx)}
	ex := s.extension(ctx)
	s.request(ctx, ex, v1beta1constants.GardenerOperationMigrate)
	s.awaitExtension(ctx)
	Expect(s.extension(ctx).Status.LastOperation.Type).To(Equal(gardencorev1beta1.LastOperationTypeMigrate))
	Expect(seed.Delete(ctx, s.extension(ctx))).To(Succeed())
	Expect(s.reserve(ctx)).To(Equal(2), "the reserve is not drained")
	Expect(imageOf(s.manager(ctx))).To(Equal(ours))
	s.deploy(ctx, 0)
	Eventually(s.kubelet.running).WithContext(ctx).Should(BeEmpty())
	var records corev1.ConfigMapList
	Expect(seed.List(ctx, &records, client.InNamespace(s.namespace), client.HasLabels{virtual.RecordLabel})).To(Succeed())
	l.records = records.Items
	s.dropMachineObjects(ctx)
	s.kubelet.shutdown()
	s.removed = true
	return l
}

// enterSeed is what gardenlet does on the seed that a control plane comes to, until the Worker is restored.
func enterSeed(ctx context.Context, name, config string, l luggage, pools ...extensionsv1alpha1.WorkerPool) *shoot {
	GinkgoHelper()
	s := prepareShoot(ctx, name, stock, pools...)
	s.withWorkers(ctx)
	for _, record := range l.records {
		record.ResourceVersion, record.UID = "", ""
		Expect(seed.Create(ctx, &record)).To(Succeed())
	}
	s.label(ctx, true)
	s.restoreExtension(ctx, config, l.state)
	s.deploy(ctx, 1)
	Expect(seed.Create(ctx, s.worker)).To(Succeed())
	s.setMachineState(ctx, machineStateIn(l.state))
	s.kubelet = startKubelet(ctx, s.namespace, s.sidecar)
	return s
}

// restoreExtension creates the Extension, gives it its state, and asks for the restore, in this order.
func (s *shoot) restoreExtension(ctx context.Context, config string, state *gardencorev1beta1.ShootState) {
	GinkgoHelper()
	ex := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "evenkeel", Annotations: map[string]string{
		v1beta1constants.GardenerOperation: v1beta1constants.GardenerOperationWaitForState,
	}}}
	ex.Spec = extensionSpec(config)
	Expect(seed.Create(ctx, ex)).To(Succeed())
	states := v1beta1helper.ExtensionResourceStateList(state.Spec.Extensions)
	kept := states.Get(extensionsv1alpha1.ExtensionResource, &ex.Name, nil)
	Expect(kept).NotTo(BeNil(), "Gardener takes the state along")
	patch := client.MergeFrom(ex.DeepCopy())
	ex.Status.State = kept.State
	Expect(seed.Status().Patch(ctx, ex, patch)).To(Succeed())
	metav1.SetMetaDataAnnotation(&ex.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationRestore)
	Expect(seed.Update(ctx, ex)).To(Succeed())
	s.awaitExtension(ctx)
}

func namesOf(machines []machinev1alpha1.Machine) []string {
	var names []string
	for _, m := range machines {
		names = append(names, m.Name)
	}
	return names
}
