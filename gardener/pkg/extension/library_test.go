// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"

	"github.com/gardener/gardener/extensions/pkg/controller/extension"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/pkg/additions"
)

// fakeManager is as much of a manager as Gardener's reconciler needs.
type fakeManager struct {
	manager.Manager
	client client.Client
}

func (m fakeManager) GetClient() client.Client { return m.client }

func (m fakeManager) GetAPIReader() client.Reader { return m.client }

// gardenletAsks has Gardener's library reconcile the Extension, as gardenlet asks.
func (s *shoot) gardenletAsks(ctx context.Context) (reconcile.Result, error) {
	GinkgoHelper()
	s.reload(ctx)
	if s.ex.DeletionTimestamp == nil {
		metav1.SetMetaDataAnnotation(&s.ex.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
		Expect(s.client.Update(ctx, s.ex)).To(Succeed())
	}
	r := extension.NewReconciler(fakeManager{client: s.client}, extension.AddArgs{Actuator: s.actuator, FinalizerSuffix: Name, Type: v1alpha1.ExtensionType})
	return r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.ex)})
}

var _ = Describe("Gardener's library", func() {
	// inSeed has the namespace of the Shoot, too.
	inSeed := func(ctx context.Context, config string) *shoot {
		GinkgoHelper()
		s := newShoot(ctx, config)
		Expect(s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespace, Labels: map[string]string{v1beta1constants.GardenRole: v1beta1constants.GardenRoleShoot},
		}})).To(Succeed())
		return s
	}
	succeeded := HaveValue(HaveField("State", gardencorev1beta1.LastOperationStateSucceeded))

	It("reports success for a valid configuration", func(ctx context.Context) {
		s := inSeed(ctx, valid)
		Expect(s.gardenletAsks(ctx)).To(BeZero())
		Expect(s.state(ctx).Config.Pools).To(HaveLen(1))
		Expect(s.ex.Finalizers).To(ConsistOf("extensions.gardener.cloud/evenkeel"))
		Expect(s.ex.Annotations).NotTo(HaveKey(v1beta1constants.GardenerOperation))
		Expect(s.ex.Status.LastOperation).To(succeeded)
	})

	It("reports success for a wrong one, so that gardenlet goes on, and the condition says what to write", func(ctx context.Context) {
		s := inSeed(ctx, wrong)
		Expect(s.gardenletAsks(ctx)).To(BeZero())
		Expect(s.condition(ctx)).To(And(HaveField("Status", gardencorev1beta1.ConditionFalse), HaveField("Message", ContainSubstring("write one of shop"))))
		Expect(s.ex.Status.LastOperation).To(succeeded)
		Expect(s.ex.Status.LastError).To(BeNil())
	})

	It("tries again by itself after a reconcile that has to wait", func(ctx context.Context) {
		s := inSeed(ctx, valid)
		Expect(s.gardenletAsks(ctx)).To(BeZero())
		resource := &resourcesv1alpha1.ManagedResource{}
		Expect(s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: additions.Name}, resource)).To(Succeed())
		resource.Finalizers = []string{"resources.gardener.cloud/gardener-resource-manager"}
		Expect(s.client.Update(ctx, resource)).To(Succeed())
		Expect(s.client.Delete(ctx, resource)).To(Succeed())
		_, err := s.gardenletAsks(ctx)
		Expect(err).To(MatchError(ContainSubstring("is still being deleted")), "only then, the library tries again")
		s.reload(ctx)
		Expect(s.ex.Status.LastError).To(HaveValue(HaveField("Description", ContainSubstring("is still being deleted"))))
	})

	It("lets the Extension go when it has left, and reports what it waits for", func(ctx context.Context) {
		s := inSeed(ctx, valid)
		Expect(s.gardenletAsks(ctx)).To(BeZero())
		s.install(ctx)
		s.pool(ctx, 1)
		s.reload(ctx)
		Expect(s.client.Delete(ctx, s.ex)).To(Succeed())
		result, err := s.gardenletAsks(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(Equal(retry))
		s.reload(ctx)
		Expect(s.ex.Status.LastError).To(HaveValue(HaveField("Description", ContainSubstring("machines in reserve 1"))))
		s.shrink(ctx)
		Expect(s.gardenletAsks(ctx)).To(BeZero())
		Expect(s.client.Get(ctx, client.ObjectKeyFromObject(s.ex), s.ex)).To(MatchError(ContainSubstring("not found")))
		Expect(s.image(ctx)).To(Equal(gardens))
	})
})
