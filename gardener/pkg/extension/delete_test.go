// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machines "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"

	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
)

func (s *shoot) delete(ctx context.Context) error {
	s.reload(ctx)
	return s.Delete(ctx, logr.Discard(), s.ex)
}

var _ = Describe("Delete", func() {
	// accepting has a Shoot run Evenkeel.
	accepting := func(ctx context.Context, change ...func(*gardencorev1beta1.Shoot)) *shoot {
		GinkgoHelper()
		s := newShoot(ctx, valid, change...)
		Expect(s.reconcile(ctx)).To(Succeed())
		s.install(ctx)
		return s
	}

	It("drains first, restores the stock image then, and forgets when no pod of ours is left", func(ctx context.Context) {
		s := accepting(ctx)
		s.pool(ctx, 1)
		Expect(s.delete(ctx)).To(beLater("machines in reserve 1"))
		Expect(s.drained(ctx)).To(BeTrue())
		Expect(s.image(ctx)).To(Equal("ours"))
		Expect(s.state(ctx).Drained).To(BeFalse())

		s.shrink(ctx)
		s.rollOut(ctx, 0)
		Expect(s.delete(ctx)).To(beLater("stock machine-controller-manager does not run yet"))
		Expect(s.image(ctx)).To(Equal(gardens))
		Expect(s.state(ctx).Drained).To(BeTrue())
		Expect(s.drained(ctx)).To(BeTrue(), "a pod of ours may still run")

		s.rollOut(ctx, 1)
		Expect(s.delete(ctx)).To(Succeed())
		Expect(s.drained(ctx)).To(BeFalse())
		Expect(s.deployment(ctx).Spec).To(Equal(newDeployment().Spec))
		before := len(s.sim.Writes())
		Expect(s.delete(ctx)).To(Succeed(), "again")
		Expect(s.sim.Writes()).To(HaveLen(before))
	})

	It("goes on after a restart: what was drained is not asked again", func(ctx context.Context) {
		s := accepting(ctx)
		s.pool(ctx, 1)
		Expect(s.rememberDrained(ctx, s.ex, s.state(ctx))).To(Succeed())
		Expect(s.delete(ctx)).To(Succeed())
		Expect(s.image(ctx)).To(Equal(gardens))
		Expect(s.drained(ctx)).To(BeFalse())
	})

	It("restores again what a webhook that is late has changed back", func(ctx context.Context) {
		s := accepting(ctx)
		s.pool(ctx, 0)
		s.late = true
		Expect(s.delete(ctx)).To(beLater("the reserve is being drained"), "it looks again after it has asked")
		Expect(s.delete(ctx)).To(beLater("does not run yet"))
		Expect(s.image(ctx)).To(Equal("ours"))
		s.late = false
		Expect(s.delete(ctx)).To(Succeed())
		Expect(s.image(ctx)).To(Equal(gardens))
	})

	It("restores what gardenlet writes at the last moment", func(ctx context.Context) {
		s := accepting(ctx)
		s.pool(ctx, 1)
		Expect(s.delete(ctx)).NotTo(Succeed())
		s.shrink(ctx)
		newer := gardens + "-next"
		s.between(mutation.DeploymentName, 2, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec = newDeployment().Spec.Template.Spec
			d.Spec.Template.Spec.Containers[1].Image = newer
			Expect(mutation.Manager{Image: "ours", Accounting: api.AccountingInclusive}.Apply(d)).To(Succeed())
		})
		Expect(s.delete(ctx)).To(beLater("another client"))
		Expect(s.delete(ctx)).To(Succeed())
		Expect(s.image(ctx)).To(Equal(newer))
	})

	It("drains nothing where stock runs already, and removes the marks", func(ctx context.Context) {
		s := accepting(ctx)
		s.pool(ctx, 1)
		d := s.deployment(ctx)
		d.Spec.Template.Spec.Containers[1] = newDeployment().Spec.Template.Spec.Containers[1]
		Expect(s.client.Update(ctx, d)).To(Succeed())
		Expect(s.delete(ctx)).To(Succeed())
		Expect(s.drained(ctx)).To(BeFalse())
		Expect(s.deployment(ctx).Labels).NotTo(HaveKey(mutation.ManagedLabel))
		Expect(s.deployment(ctx).Annotations).To(BeEmpty())
	})

	It("drains also where another webhook has replaced the registry of the image", func(ctx context.Context) {
		s := accepting(ctx)
		s.pool(ctx, 1)
		d := s.deployment(ctx)
		d.Spec.Template.Spec.Containers[1].Image = "mirror.example.com/ours"
		Expect(s.client.Update(ctx, d)).To(Succeed())
		Expect(s.delete(ctx)).To(beLater("machines in reserve 1"))
		s.shrink(ctx)
		Expect(s.delete(ctx)).To(Succeed())
		Expect(s.deployment(ctx).Spec).To(Equal(newDeployment().Spec))
	})

	It("does not wait for a MachineDeployment without machines", func(ctx context.Context) {
		s := accepting(ctx)
		ours := machines.NewForConfigOrDie(s.sim.ConfigFor("test"))
		_, err := ours.MachineV1alpha1().MachineDeployments(namespace).Create(ctx, &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "shop", Annotations: map[string]string{api.AppliedExcessAnnotation: "1"},
		}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.delete(ctx)).To(Succeed())
		Expect(s.image(ctx)).To(Equal(gardens))
	})

	It("leaves a Shoot alone that is being deleted", func(ctx context.Context) {
		s := accepting(ctx, func(s *gardencorev1beta1.Shoot) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })
		s.pool(ctx, 1)
		Expect(s.delete(ctx)).To(Succeed())
		Expect(s.image(ctx)).To(Equal("ours"))
		Expect(s.drained(ctx)).To(BeFalse())
		Expect(s.ForceDelete(ctx, logr.Discard(), s.ex)).To(Succeed())
	})

	It("does nothing if no configuration was ever accepted", func(ctx context.Context) {
		s := newShoot(ctx, wrong)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.delete(ctx)).To(Succeed())
		Expect(s.deployment(ctx).Spec).To(Equal(newDeployment().Spec))
		Expect(s.sim.Writes()).To(BeEmpty())
	})

	It("does nothing where there is no machine-controller-manager", func(ctx context.Context) {
		s := accepting(ctx)
		Expect(s.client.Delete(ctx, s.deployment(ctx))).To(Succeed())
		Expect(s.delete(ctx)).To(Succeed())
		Expect(s.sim.Writes()).To(BeEmpty())
	})
})
