// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"time"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// added counts what the extension has added to the Shoot.
func (s *shoot) added(ctx context.Context) (n int) {
	GinkgoHelper()
	for _, list := range []client.ObjectList{
		&corev1.SecretList{}, &corev1.ConfigMapList{}, &resourcesv1alpha1.ManagedResourceList{}, &monitoringv1.ServiceMonitorList{}, &monitoringv1.PrometheusRuleList{},
		&rbacv1.RoleBindingList{},
	} {
		Expect(s.client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		n += meta.LenList(list)
	}
	return n
}

// hibernate has the owner hibernate the Shoot, or wake it up.
func (s *shoot) hibernate(ctx context.Context, enabled bool) {
	GinkgoHelper()
	cluster, err := extensionscontroller.GetCluster(ctx, s.client, namespace)
	Expect(err).NotTo(HaveOccurred())
	cluster.Shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: &enabled}
	stored := &extensionsv1alpha1.Cluster{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: namespace}, stored)).To(Succeed())
	stored.Spec.Shoot.Raw, stored.Spec.Shoot.Object = nil, cluster.Shoot
	Expect(s.client.Update(ctx, stored)).To(Succeed())
}

var _ = Describe("Rights and monitoring", func() {
	const all = 6

	It("come with the first valid configuration, and stay with a wrong one", func(ctx context.Context) {
		s := newShoot(ctx, wrong)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.added(ctx)).To(BeZero(), "the Shoot runs stock")
		s.configure(ctx, valid)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.added(ctx)).To(Equal(all))
		s.configure(ctx, wrong)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.added(ctx)).To(Equal(all))
	})

	It("go when no pod of Evenkeel is left", func(ctx context.Context) {
		s := newShoot(ctx, valid)
		Expect(s.reconcile(ctx)).To(Succeed())
		s.install(ctx)
		s.pool(ctx, 1)
		Expect(s.delete(ctx)).NotTo(Succeed())
		s.shrink(ctx)
		s.rollOut(ctx, 0)
		Expect(s.delete(ctx)).NotTo(Succeed())
		Expect(s.added(ctx)).To(Equal(all), "law 5")
		s.rollOut(ctx, 1)
		Expect(s.delete(ctx)).To(Succeed())
		Expect(s.added(ctx)).To(BeZero())
	})

	DescribeTable("go with the Extension", func(ctx context.Context, leave func(context.Context, *shoot) error, change ...func(*gardencorev1beta1.Shoot)) {
		s := newShoot(ctx, valid, change...)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.added(ctx)).To(Equal(all))
		Expect(leave(ctx, s)).To(Succeed())
		Expect(s.added(ctx)).To(BeZero())
	},
		Entry("of a Shoot that is deleted", func(ctx context.Context, s *shoot) error { return s.delete(ctx) },
			func(s *gardencorev1beta1.Shoot) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }),
		Entry("of a Shoot that is deleted by force", func(ctx context.Context, s *shoot) error { return s.ForceDelete(ctx, logr.Discard(), s.ex) }),
		Entry("of a Shoot that runs stock already", func(ctx context.Context, s *shoot) error { return s.delete(ctx) }),
		Entry("of a Shoot without a manager", func(ctx context.Context, s *shoot) error {
			Expect(s.client.Delete(ctx, s.deployment(ctx))).To(Succeed())
			return s.delete(ctx)
		}),
	)

	It("come back after those from before are gone, which a hibernated Shoot does not wait for", func(ctx context.Context) {
		s := newShoot(ctx, buffers)
		Expect(s.reconcile(ctx)).To(Succeed())
		resource := &resourcesv1alpha1.ManagedResource{}
		Expect(s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "extension-evenkeel-capacitybuffers"}, resource)).To(Succeed())
		resource.Finalizers = []string{"resources.gardener.cloud/gardener-resource-manager"}
		Expect(s.client.Update(ctx, resource)).To(Succeed())
		s.configure(ctx, valid)
		Expect(s.reconcile(ctx)).To(Succeed())
		s.configure(ctx, buffers)
		s.hibernate(ctx, true)
		Expect(s.reconcile(ctx)).To(Succeed())
		s.hibernate(ctx, false)
		Expect(s.reconcile(ctx)).To(MatchError(ContainSubstring("extension-evenkeel-capacitybuffers is still being deleted")))
		Expect(s.client.Get(ctx, client.ObjectKeyFromObject(resource), resource)).To(Succeed())
		resource.Finalizers = nil
		Expect(s.client.Update(ctx, resource)).To(Succeed())
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.client.Get(ctx, client.ObjectKeyFromObject(resource), resource)).To(Succeed())
	})

	It("go from the seed that a control plane leaves, and the rights in the Shoot stay", func(ctx context.Context) {
		s := newShoot(ctx, valid)
		Expect(s.reconcile(ctx)).To(Succeed())
		resource := &resourcesv1alpha1.ManagedResource{}
		Expect(s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "extension-evenkeel-shoot"}, resource)).To(Succeed())
		resource.Finalizers = []string{"resources.gardener.cloud/gardener-resource-manager"}
		Expect(s.client.Update(ctx, resource)).To(Succeed())
		Expect(s.Migrate(ctx, logr.Discard(), s.ex)).To(Succeed())
		Expect(s.added(ctx)).To(Equal(1), "gardener-resource-manager lets it go")
		Expect(s.client.Get(ctx, client.ObjectKeyFromObject(resource), resource)).To(Succeed())
		Expect(resource.DeletionTimestamp).NotTo(BeNil())
		Expect(resource.Spec.KeepObjects).To(HaveValue(BeTrue()))
	})
})
