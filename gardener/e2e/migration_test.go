// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/gardener/shootstate"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// migrate moves the control plane as if to another seed: what Gardener keeps of the machines, Gardener restores. The machines
// themselves and their Nodes stay.
func (s *shoot) migrate(ctx context.Context) error {
	GinkgoHelper()
	s.deploy(ctx, 0)
	Eventually(s.kubelet.running).WithContext(ctx).Should(BeEmpty())
	state := s.machineState(ctx)
	s.dropMachineObjects(ctx)
	s.setMachineState(ctx, state)
	return s.restored(ctx)
}

func (s *shoot) setMachineState(ctx context.Context, state runtime.RawExtension) {
	GinkgoHelper()
	Expect(seed.Get(ctx, client.ObjectKeyFromObject(s.worker), s.worker)).To(Succeed())
	patch := client.MergeFrom(s.worker.DeepCopy())
	s.worker.Status.State = &state
	Expect(seed.Status().Patch(ctx, s.worker, patch)).To(Succeed())
}

// restored is a restore of the Worker with the patience of a test.
func (s *shoot) restored(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := seed.Get(ctx, client.ObjectKeyFromObject(s.worker), s.worker); err != nil {
		return err
	}
	return s.actuator.Restore(ctx, GinkgoLogr, s.worker, s.cluster)
}

// shootState is what gardenlet keeps of the Shoot in the garden.
func (s *shoot) shootState(ctx context.Context) *gardencorev1beta1.ShootState {
	GinkgoHelper()
	garden := fake.NewClientBuilder().WithScheme(kubernetes.GardenScheme).Build()
	Expect(shootstate.Deploy(ctx, clock.RealClock{}, garden, seed, s.cluster.Shoot, s.namespace, true)).To(Succeed())
	all := &gardencorev1beta1.ShootState{}
	Expect(garden.Get(ctx, client.ObjectKeyFromObject(s.cluster.Shoot), all)).To(Succeed())
	return all
}

// machineState is what gardenlet keeps of the machines.
func (s *shoot) machineState(ctx context.Context) runtime.RawExtension {
	GinkgoHelper()
	return machineStateIn(s.shootState(ctx))
}

func machineStateIn(all *gardencorev1beta1.ShootState) runtime.RawExtension {
	GinkgoHelper()
	data := v1beta1helper.GardenerResourceDataList(all.Spec.Gardener)
	machines := data.Get(v1beta1constants.DataTypeMachineState)
	Expect(machines).NotTo(BeNil())
	return machines.Data
}

// dropMachineObjects takes the objects off the seed, as the extension does on the seed that is left.
func (s *shoot) dropMachineObjects(ctx context.Context) {
	GinkgoHelper()
	for _, list := range []client.ObjectList{
		&machinev1alpha1.MachineDeploymentList{}, &machinev1alpha1.MachineSetList{}, &machinev1alpha1.MachineList{}, &machinev1alpha1.MachineClassList{},
	} {
		Expect(seed.List(ctx, list, client.InNamespace(s.namespace))).To(Succeed())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			patch := client.MergeFrom(object.DeepCopyObject().(client.Object))
			object.SetFinalizers(nil)
			if err := seed.Patch(ctx, object, patch); err != nil {
				return err
			}
			return client.IgnoreNotFound(seed.Delete(ctx, object))
		})).To(Succeed())
	}
}

// movesToAnotherSeed is the extension's part of a migration.
func movesToAnotherSeed(ctx context.Context) {
	first, _ := thisSeed(), installExtension(ctx)
	second := newSeed(ctx, "gardener-other-seed")
	s := newReservedShoot(ctx, "moving")
	machines, serving := s.names(ctx), namesOf(s.serving(ctx))
	Expect(serving).To(HaveLen(2))

	By("it leaves the first seed")
	left := s.leaveSeed(ctx)

	By("it comes to the second")
	second.use()
	installExtension(ctx)
	moved := enterSeed(ctx, "moving", reserveOfTwo, left, newPool("pool", 2, 6, "a"))
	defer first.use()
	defer moved.remove(ctx)
	Expect(imageOf(moved.manager(ctx))).To(Equal(ours))
	Expect(moved.worker.Spec.Pools[0].Annotations).To(HaveKeyWithValue(machine.BoundsAnnotation, "2:6:2"))
	Expect(moved.restored(ctx)).To(Succeed())
	moved.settles(ctx, 4)
	Expect(moved.names(ctx)).To(ConsistOf(machines))
	Expect(namesOf(moved.serving(ctx))).To(ConsistOf(serving))
	moved.enable(ctx, reserveOfTwo)
	moved.gardenletReconciles(ctx)
	moved.settles(ctx, 4)
	Expect(moved.names(ctx)).To(ConsistOf(machines))
}
