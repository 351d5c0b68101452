// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/pkg/accepted"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
)

const fork = "gardener/cluster-autoscaler:v1.36.0"

func wantsUpstream(_ *extensionsv1alpha1.Extension, s *accepted.State) {
	s.Config.Autoscaler = v1alpha1.AutoscalerUpstream
}

func migrates(ex *extensionsv1alpha1.Extension, _ *accepted.State) {
	ex.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: gardencorev1beta1.LastOperationTypeMigrate}
}

// newAutoscaler is what gardenlet writes, in short.
func newAutoscaler() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: mutation.AutoscalerName, Labels: map[string]string{"role": mutation.AutoscalerName}},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: mutation.AutoscalerName, Image: fork, Command: []string{"./cluster-autoscaler", "--cloud-provider=mcm", "--nodes=3:9:shoot.shop", "--v=2"}},
		}}}},
	}
}

var _ = Describe("A Shoot with an unmodified cluster-autoscaler", func() {
	It("gets the server first, and is the same after each further write", func(ctx context.Context) {
		g := newGarden()
		g.extension(ctx, wantsUpstream)
		Expect(g.write(ctx, newAutoscaler()).Spec).To(Equal(newAutoscaler().Spec), "nobody serves it")
		manager := g.write(ctx, rolledOut())
		Expect(g.unmodified(ctx)).To(BeFalse())
		autoscaler := g.write(ctx, newAutoscaler())
		Expect(g.unmodified(ctx)).To(BeTrue())
		for range 2 {
			Expect(g.write(ctx, newDeployment(stock)).Spec).To(Equal(manager.Spec))
			Expect(g.write(ctx, newAutoscaler()).Spec).To(Equal(autoscaler.Spec))
			Expect(g.touch(ctx, mutation.DeploymentName).Spec).To(Equal(manager.Spec))
			Expect(g.touch(ctx, mutation.AutoscalerName).Spec).To(Equal(autoscaler.Spec))
		}
	})

	// Each row says for which of gardenlet's writes the webhook answers. From wherever the Shoot comes, the autoscaler that was
	// written last is never one without a server.
	DescribeTable("works whichever write goes past the webhook", func(ctx context.Context, begin func(context.Context) *garden, managerDown, autoscalerDown bool) {
		g := begin(ctx)
		g.down = managerDown
		g.write(ctx, newDeployment(stock))
		Expect(g.served(ctx)).NotTo(Equal(managerDown))
		g.down = autoscalerDown
		g.write(ctx, newAutoscaler())
		Expect(g.unmodified(ctx)).To(Equal(!managerDown && !autoscalerDown))
		g.down = false
		g.write(ctx, newDeployment(stock))
		g.write(ctx, newAutoscaler())
		Expect(g.unmodified(ctx)).To(BeTrue(), "after the next reconcile")
	},
		Entry("from the fork: none", fresh, false, false),
		Entry("from the fork: that of the manager", fresh, true, false),
		Entry("from the fork: that of the autoscaler", fresh, false, true),
		Entry("from the fork: both", fresh, true, true),
		Entry("afterwards: none", alive, false, false),
		Entry("afterwards: that of the manager", alive, true, false),
		Entry("afterwards: that of the autoscaler", alive, false, true),
		Entry("afterwards: both", alive, true, true),
	)

	DescribeTable("keeps the server until the fork is back", func(ctx context.Context, change ...func(*extensionsv1alpha1.Extension, *accepted.State)) {
		g := alive(ctx)
		g.extension(ctx, change...)
		g.write(ctx, newDeployment(stock))
		Expect(g.served(ctx)).To(BeTrue(), "cluster-autoscaler calls it")
		Expect(g.write(ctx, newAutoscaler()).Spec).To(Equal(newAutoscaler().Spec))
		g.write(ctx, newDeployment(stock))
		Expect(g.served(ctx)).To(BeFalse())
	},
		Entry("when its owner wants the fork"),
		Entry("when it moves to another seed", wantsUpstream, migrates),
	)

	DescribeTable("keeps no server for one whose fork only gardenlet can bring back, because the extension does not wait for that", func(ctx context.Context, lost string) {
		g := alive(ctx)
		g.extension(ctx)
		d := g.find(ctx, mutation.AutoscalerName)
		Expect(d.Annotations).To(HaveKey(lost))
		delete(d.Annotations, lost)
		Expect(g.Update(ctx, d)).To(Succeed())
		g.touch(ctx, mutation.AutoscalerName)
		Expect(g.unmodified(ctx)).To(BeTrue())
		g.touch(ctx, mutation.DeploymentName)
		Expect(g.served(ctx)).To(BeFalse())
		Expect(g.write(ctx, newAutoscaler()).Spec).To(Equal(newAutoscaler().Spec))
	},
		Entry("its command is lost", "evenkeel.extensions.gardener.cloud/replaced-command"),
		Entry("its image is lost", mutation.ReplacedImageAnnotation),
	)

	It("gets the fork back by any write once it is not wanted", func(ctx context.Context) {
		g := alive(ctx)
		g.extension(ctx)
		Expect(g.touch(ctx, mutation.AutoscalerName).Spec).To(Equal(newAutoscaler().Spec))
		g.touch(ctx, mutation.DeploymentName)
		Expect(g.served(ctx)).To(BeFalse())
	})

	It("waits for the server to run the first time, and not when its pod is replaced", func(ctx context.Context) {
		g := newGarden()
		g.extension(ctx, wantsUpstream)
		rolling := newDeployment(stock)
		rolling.Status.Replicas = 2
		g.write(ctx, rolling)
		g.write(ctx, newAutoscaler())
		Expect(g.unmodified(ctx)).To(BeFalse())
		d := g.find(ctx, mutation.DeploymentName)
		d.Status.Replicas = 0
		Expect(g.Status().Update(ctx, d)).To(Succeed())
		g.write(ctx, newAutoscaler())
		Expect(g.unmodified(ctx)).To(BeFalse(), "no pod yet")
		d.Status.Replicas, d.Status.UpdatedReplicas = 1, 1
		Expect(g.Status().Update(ctx, d)).To(Succeed())
		g.touch(ctx, mutation.AutoscalerName)
		Expect(g.unmodified(ctx)).To(BeTrue())
		d.Status.Replicas, d.Status.UpdatedReplicas = 0, 0
		Expect(g.Status().Update(ctx, d)).To(Succeed())
		g.write(ctx, newAutoscaler())
		Expect(g.unmodified(ctx)).To(BeTrue())
	})

	DescribeTable("has the fork where a pool would not be scaled, and its manager keeps the server", func(ctx context.Context, begin func(context.Context) *garden, bounds string) {
		g := begin(ctx)
		w := newWorker()
		Expect(g.Get(ctx, client.ObjectKeyFromObject(w), w)).To(Succeed())
		w.Spec.Pools[0].Annotations[machine.BoundsAnnotation] = bounds
		Expect(g.Update(ctx, w)).To(Succeed())
		g.write(ctx, rolledOut())
		Expect(g.write(ctx, newAutoscaler()).Spec).To(Equal(newAutoscaler().Spec))
		g.write(ctx, rolledOut())
		Expect(g.served(ctx)).To(BeTrue())
		Expect(g.Delete(ctx, w)).To(Succeed())
		Expect(g.write(ctx, newAutoscaler()).Spec).To(Equal(newAutoscaler().Spec))
	},
		Entry("from the fork: no bounds", fresh, ""),
		Entry("afterwards: no bounds", alive, ""),
		Entry("afterwards: bounds in a wrong form", alive, "3-9"),
	)

	DescribeTable("has the fork, and its manager no server, without certificates", func(ctx context.Context, missing string) {
		g := alive(ctx)
		Expect(g.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: missing}})).To(Succeed())
		g.write(ctx, newDeployment(stock))
		Expect(g.served(ctx)).To(Equal(missing != nodegroups.ServerName))
		Expect(g.write(ctx, newAutoscaler()).Spec).To(Equal(newAutoscaler().Spec))
	},
		Entry("of the server", nodegroups.ServerName),
		Entry("of cluster-autoscaler", nodegroups.ClientName),
	)

	It("keeps the manager, its server, and some cluster-autoscaler while the API server does not answer", func(ctx context.Context) {
		g := alive(ctx)
		manager := g.find(ctx, mutation.DeploymentName)
		g.Client = interceptor.NewClient(g.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if _, cached := o.(*extensionsv1alpha1.Extension); cached {
					return c.Get(ctx, key, o, options...)
				}
				return errors.New("no answer")
			},
		})
		wanted := newDeployment(stock)
		g.admit(ctx, wanted, manager)
		Expect(wanted.Spec).To(Equal(manager.Spec))
		fromFork := newAutoscaler()
		g.admit(ctx, fromFork, nil)
		Expect(fromFork.Spec).To(Equal(newAutoscaler().Spec))
		first := newDeployment(stock)
		g.admit(ctx, first, nil)
		Expect(imageOf(first)).To(Equal(ours))
		Expect(mutation.IsServing(first)).To(BeFalse())
	})

	It("has bounds on all its pools, so that they are node groups", func(ctx context.Context) {
		w := newWorker()
		w.Spec.Pools = append(w.Spec.Pools, extensionsv1alpha1.WorkerPool{Name: "other", Minimum: 1, Maximum: 5})
		g := newGarden()
		g.extension(ctx, wantsUpstream)
		Expect((&mutator{reader: g}).Mutate(ctx, w, nil)).To(Succeed())
		Expect(w.Spec.Pools[1].Annotations).To(Equal(map[string]string{machine.BoundsAnnotation: "1:5"}))
	})
})
