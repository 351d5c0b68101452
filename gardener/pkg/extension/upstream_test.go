// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
)

const unmodified = `{` + header + `,"pools":[{"name":"shop","excess":2}],"autoscaler":"upstream"}`

var upstream = mutation.Autoscaler{Image: "upstream", Files: "1"}

// recorder is what happens to Deployments, and to what cluster-autoscaler needs.
type recorder struct {
	writes []string
	// undo has the webhook answer as often by a state of before.
	undo int
}

// withUpstream has a Shoot run the unmodified cluster-autoscaler, and records what happens from then on.
func withUpstream(ctx context.Context) (*shoot, *recorder) {
	GinkgoHelper()
	s, r := newShoot(ctx, unmodified), &recorder{}
	Expect(s.reconcile(ctx)).To(Succeed())
	d := s.deployment(ctx)
	Expect((mutation.Manager{Image: "ours", Accounting: api.AccountingInclusive, Server: &mutation.Server{Authority: "1"}}).Apply(d)).To(Succeed())
	Expect(s.client.Update(ctx, d)).To(Succeed())
	Expect(s.client.Create(ctx, newAutoscaler(upstream.Apply))).To(Succeed())
	s.actuator.client = interceptor.NewClient(s.actuator.client.(client.WithWatch), interceptor.Funcs{Patch: r.patch, Delete: r.delete})
	return s, r
}

func newAutoscaler(change ...func(*appsv1.Deployment) error) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: mutation.AutoscalerName},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: mutation.AutoscalerName, Image: "fork", Command: []string{"./cluster-autoscaler", "--cloud-provider=mcm"}},
		}}}},
	}
	for _, c := range change {
		Expect(c(d)).To(Succeed())
	}
	return d
}

func (r *recorder) patch(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	d, ok := o.(*appsv1.Deployment)
	if !ok {
		return c.Patch(ctx, o, patch, options...)
	}
	r.writes = append(r.writes, d.Name)
	if r.undo > 0 {
		r.undo--
		return nil
	}
	return c.Patch(ctx, o, patch, options...)
}

func (r *recorder) delete(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
	if o.GetName() == nodegroups.ServerName {
		r.writes = append(r.writes, o.GetName())
	}
	return c.Delete(ctx, o, options...)
}

// between has gardenlet write a Deployment when the actuator has just read it for the nth time.
func (s *shoot) between(name string, nth int, write func(*appsv1.Deployment)) {
	reads := 0
	s.actuator.reader = interceptor.NewClient(s.actuator.client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, o, options...)
			if key.Name == name {
				reads++
			}
			if err != nil || key.Name != name || reads != nth {
				return err
			}
			d := o.DeepCopyObject().(*appsv1.Deployment)
			write(d)
			return c.Update(ctx, d)
		},
	})
}

// left is what is left of the unmodified cluster-autoscaler.
func (s *shoot) left(ctx context.Context) (left []string) {
	GinkgoHelper()
	autoscaler := &appsv1.Deployment{}
	Expect(s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: mutation.AutoscalerName}, autoscaler)).To(Succeed())
	if mutation.IsUpstream(autoscaler) {
		left = append(left, "autoscaler")
	}
	if mutation.IsServing(s.deployment(ctx)) {
		left = append(left, "server")
	}
	for name, object := range map[string]client.Object{
		nodegroups.AuthorityName: &corev1.Secret{}, nodegroups.ServerName: &corev1.Secret{}, nodegroups.ClientName: &corev1.Secret{}, nodegroups.ServiceName: &corev1.Service{},
	} {
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err == nil {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left
}

var _ = Describe("An unmodified cluster-autoscaler", func() {
	everything := []string{"autoscaler", nodegroups.ServiceName, nodegroups.AuthorityName, nodegroups.ClientName, nodegroups.ServerName, "server"}
	inOrder := []string{mutation.AutoscalerName, mutation.DeploymentName, nodegroups.ServerName}

	It("gets certificates and a Service, and no Deployment is written", func(ctx context.Context) {
		s, r := withUpstream(ctx)
		Expect(s.left(ctx)).To(Equal(everything))
		Expect(s.reconcile(ctx)).To(Succeed())
		s.configure(ctx, wrong)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.left(ctx)).To(Equal(everything), "the last valid configuration counts")
		Expect(r.writes).To(BeEmpty())
	})

	DescribeTable("goes in this order: it, the server, the certificates", func(ctx context.Context, leave func(context.Context, *shoot) error) {
		s, r := withUpstream(ctx)
		Expect(leave(ctx, s)).To(Succeed())
		Expect(r.writes).To(Equal(inOrder))
		Expect(s.left(ctx)).To(BeEmpty())
	},
		Entry("when its owner wants the fork", func(ctx context.Context, s *shoot) error {
			s.configure(ctx, valid)
			return s.reconcile(ctx)
		}),
		Entry("when it moves to another seed", func(ctx context.Context, s *shoot) error { return s.Migrate(ctx, logr.Discard(), s.ex) }),
		Entry("when it is deleted by force", func(ctx context.Context, s *shoot) error { return s.ForceDelete(ctx, logr.Discard(), s.ex) }),
		Entry("when the Shoot is deleted", func(ctx context.Context, s *shoot) error {
			Expect(s.client.Update(ctx, deletedCluster(ctx, s))).To(Succeed())
			return s.delete(ctx)
		}),
	)

	It("goes before the reserve is drained", func(ctx context.Context) {
		s, r := withUpstream(ctx)
		s.pool(ctx, 1)
		Expect(s.delete(ctx)).To(beLater("the reserve is being drained"))
		Expect(r.writes).To(Equal(inOrder))
		Expect(s.image(ctx)).To(Equal("ours"))
		Expect(s.left(ctx)).To(BeEmpty())
	})

	It("is looked at again where a webhook that is late has changed it back", func(ctx context.Context) {
		s, r := withUpstream(ctx)
		r.undo = 2
		s.configure(ctx, valid)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.left(ctx)).To(BeEmpty())
		Expect(r.writes).To(Equal(slices.Concat([]string{mutation.AutoscalerName, mutation.AutoscalerName}, inOrder)))
	})

	It("goes where gardenlet writes the fork at the same moment, and that stays", func(ctx context.Context) {
		s, _ := withUpstream(ctx)
		s.configure(ctx, valid)
		fork := newAutoscaler()
		fork.Spec.Template.Spec.Containers[0].Command = append(fork.Spec.Template.Spec.Containers[0].Command, "--nodes=3:9:shoot.new")
		s.between(mutation.AutoscalerName, 1, func(d *appsv1.Deployment) { d.Spec = fork.Spec })
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.left(ctx)).To(BeEmpty())
		d := &appsv1.Deployment{}
		Expect(s.client.Get(ctx, client.ObjectKeyFromObject(fork), d)).To(Succeed())
		Expect(d.Spec).To(Equal(fork.Spec))
	})

	It("does not stop the reconcile of the Shoot where the command of the fork is lost, because gardenlet writes it afterwards", func(ctx context.Context) {
		s, r := withUpstream(ctx)
		d := &appsv1.Deployment{}
		Expect(s.client.Get(ctx, client.ObjectKeyFromObject(newAutoscaler()), d)).To(Succeed())
		d.Annotations = map[string]string{mutation.ImageAnnotation: "upstream"}
		Expect(s.client.Update(ctx, d)).To(Succeed())
		s.configure(ctx, valid)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.left(ctx)).To(Equal([]string{"autoscaler"}))
		Expect(r.writes).To(Equal(inOrder[1:]))
		Expect(s.Migrate(ctx, logr.Discard(), s.ex)).To(Succeed())
	})

	It("keeps its certificates where it does not go", func(ctx context.Context) {
		s, r := withUpstream(ctx)
		r.undo = 100
		s.configure(ctx, valid)
		Expect(s.reconcile(ctx)).To(MatchError(ContainSubstring("are still changed")))
		Expect(s.left(ctx)).To(Equal(everything))
	})
})

// deletedCluster is that of a Shoot that is being deleted.
func deletedCluster(ctx context.Context, s *shoot) *extensionsv1alpha1.Cluster {
	GinkgoHelper()
	cluster := &extensionsv1alpha1.Cluster{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: namespace}, cluster)).To(Succeed())
	gone := &gardencorev1beta1.Shoot{TypeMeta: metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"}}
	gone.DeletionTimestamp = &metav1.Time{Time: s.time.Now()}
	cluster.Spec.Shoot.Raw, cluster.Spec.Shoot.Object = nil, gone
	return cluster
}
