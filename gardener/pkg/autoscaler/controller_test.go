// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"errors"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/pkg/accepted"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
)

const namespace = "shoot--project--shop"

var (
	served   = mutation.Manager{Image: "ours", Accounting: machine.AccountingInclusive, Server: &mutation.Server{Authority: "1"}}
	unserved = mutation.Manager{Image: "ours", Accounting: machine.AccountingInclusive}
	upstream = mutation.Autoscaler{Image: "upstream", Files: "1"}
)

// newDeployment is what gardenlet writes, in short, and has rolled out.
func newDeployment(name, command string, change ...func(*appsv1.Deployment) error) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: name, Image: "gardens", Command: []string{"./" + name, command}},
		}}}},
		Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1},
	}
	for _, c := range change {
		Expect(c(d)).To(Succeed())
	}
	return d
}

func newManager(change ...func(*appsv1.Deployment) error) *appsv1.Deployment {
	GinkgoHelper()
	return newDeployment(mutation.DeploymentName, "--safety-up=2", change...)
}

func newAutoscaler(change ...func(*appsv1.Deployment) error) *appsv1.Deployment {
	GinkgoHelper()
	return newDeployment(mutation.AutoscalerName, "--cloud-provider=mcm", change...)
}

func newExtension(autoscaler v1alpha1.Autoscaler) *extensionsv1alpha1.Extension {
	GinkgoHelper()
	config, err := v1alpha1.Decode(nil)
	Expect(err).NotTo(HaveOccurred())
	config.Autoscaler = autoscaler
	ex := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "evenkeel"}}
	Expect((&accepted.State{Config: config}).Write(ex)).To(Succeed())
	return ex
}

// seed has a webhook, which is down if it is nil, and the steps that were taken.
type seed struct {
	client.Client
	webhook func(*appsv1.Deployment) error
	patches []string
}

func newSeed(objects ...client.Object) *seed {
	GinkgoHelper()
	s := &seed{}
	worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}}
	worker.Spec.Pools = []extensionsv1alpha1.WorkerPool{{Name: "shop", Annotations: map[string]string{machine.BoundsAnnotation: "3:9"}}}
	objects = append(objects, worker)
	s.Client = fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{Patch: s.patch}).Build()
	return s
}

func (s *seed) patch(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	if o.GetName() == "" {
		return errors.New("resource name may not be empty") // as the client of a real API server
	}
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	s.patches = append(s.patches, o.GetName()+" "+map[bool]string{true: "touched", false: "changed"}[string(data) == "{}"])
	if err := c.Patch(ctx, o, patch, options...); err != nil || s.webhook == nil {
		return err
	}
	if err := s.webhook(o.(*appsv1.Deployment)); err != nil {
		return err
	}
	return c.Update(ctx, o)
}

// reconcile returns whether the Shoot is looked at again soon.
func (s *seed) reconcile(ctx context.Context) bool {
	GinkgoHelper()
	r := &reconciler{client: s.Client, reader: s.Client}
	result, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "evenkeel"}})
	Expect(err).NotTo(HaveOccurred())
	return result.RequeueAfter == again
}

func (s *seed) deployment(ctx context.Context, name string) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	Expect(s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d)).To(Succeed())
	return d
}

var _ = Describe("The controller", func() {
	It("has the webhook bring the server back that gardenlet has written over", func(ctx context.Context) {
		s := newSeed(newExtension(v1alpha1.AutoscalerUpstream), newManager(), newAutoscaler(upstream.Apply))
		s.webhook = served.Apply
		Expect(s.reconcile(ctx)).To(BeFalse())
		Expect(s.patches).To(Equal([]string{"machine-controller-manager touched"}))
		Expect(s.reconcile(ctx)).To(BeFalse())
		Expect(s.patches).To(HaveLen(1), "law 2")
	})

	It("has the fork run while the webhook does not answer, and brings neither back by itself", func(ctx context.Context) {
		s := newSeed(newExtension(v1alpha1.AutoscalerUpstream), newManager(), newAutoscaler(upstream.Apply))
		Expect(s.reconcile(ctx)).To(BeFalse())
		Expect(s.patches).To(Equal([]string{"machine-controller-manager touched", "cluster-autoscaler changed"}))
		Expect(s.deployment(ctx, mutation.AutoscalerName).Spec).To(Equal(newAutoscaler().Spec))
	})

	It("has the webhook change the fork when the server runs, and asks again until it answers", func(ctx context.Context) {
		s := newSeed(newExtension(v1alpha1.AutoscalerUpstream), newManager(served.Apply), newAutoscaler())
		Expect(s.reconcile(ctx)).To(BeTrue(), "law 3")
		s.webhook = upstream.Apply
		Expect(s.reconcile(ctx)).To(BeFalse())
		Expect(mutation.IsUpstream(s.deployment(ctx, mutation.AutoscalerName))).To(BeTrue())
	})

	It("takes back what is not wanted, the server last", func(ctx context.Context) {
		s := newSeed(newExtension(v1alpha1.AutoscalerFork), newManager(served.Apply), newAutoscaler(upstream.Apply))
		Expect(s.reconcile(ctx)).To(BeTrue())
		s.webhook = unserved.Apply
		Expect(s.reconcile(ctx)).To(BeFalse())
		Expect(s.patches).To(Equal([]string{"cluster-autoscaler changed", "machine-controller-manager touched"}))
		Expect(mutation.IsServing(s.deployment(ctx, mutation.DeploymentName))).To(BeFalse())
	})

	It("restores the fork where a pool has lost its bounds, and looks for that from time to time", func(ctx context.Context) {
		s := newSeed(newExtension(v1alpha1.AutoscalerUpstream), newManager(served.Apply), newAutoscaler(upstream.Apply))
		r := &reconciler{client: s.Client, reader: s.Client}
		request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "evenkeel"}}
		Expect(r.Reconcile(ctx, request)).To(HaveField("RequeueAfter", anyway))
		worker := &extensionsv1alpha1.Worker{}
		Expect(s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop"}, worker)).To(Succeed())
		worker.Spec.Pools[0].Annotations = nil
		Expect(s.Update(ctx, worker)).To(Succeed())
		Expect(s.reconcile(ctx)).To(BeFalse())
		Expect(mutation.IsUpstream(s.deployment(ctx, mutation.AutoscalerName))).To(BeFalse())
		Expect(s.reconcile(ctx)).To(BeFalse())
		Expect(s.patches).To(HaveLen(1), "gardenlet writes the Worker")
	})

	It("does not write over what gardenlet writes while the webhook does not answer", func(ctx context.Context) {
		s := newSeed(newExtension(v1alpha1.AutoscalerUpstream), newManager(), newAutoscaler(upstream.Apply))
		command := []string{"./cluster-autoscaler", "--cloud-provider=mcm", "--nodes=3:9:shoot.new"}
		s.webhook = func(*appsv1.Deployment) error {
			s.webhook = nil
			d := s.deployment(ctx, mutation.AutoscalerName)
			d.Spec = newAutoscaler().Spec
			d.Spec.Template.Spec.Containers[0].Command = command
			return s.Update(ctx, d)
		}
		r := &reconciler{client: s.Client, reader: s.Client}
		_, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "evenkeel"}})
		Expect(err).To(MatchError(apierrors.IsConflict, "IsConflict"))
		s.reconcile(ctx)
		Expect(s.deployment(ctx, mutation.AutoscalerName).Spec.Template.Spec.Containers[0].Command).To(Equal(command))
	})

	It("restores the fork where there is no manager", func(ctx context.Context) {
		s := newSeed(newExtension(v1alpha1.AutoscalerUpstream), newAutoscaler(upstream.Apply))
		Expect(s.reconcile(ctx)).To(BeFalse())
		Expect(s.patches).To(Equal([]string{"cluster-autoscaler changed"}))
		Expect(s.deployment(ctx, mutation.AutoscalerName).Spec).To(Equal(newAutoscaler().Spec))
	})

	It("restores the fork where the Extension is gone", func(ctx context.Context) {
		s := newSeed(newManager(), newAutoscaler(upstream.Apply))
		s.reconcile(ctx)
		Expect(mutation.IsUpstream(s.deployment(ctx, mutation.AutoscalerName))).To(BeFalse())
	})

	DescribeTable("writes nothing", func(ctx context.Context, objects ...client.Object) {
		s := newSeed(objects...)
		Expect(s.reconcile(ctx)).To(BeFalse())
		Expect(s.patches).To(BeEmpty())
	},
		Entry("in a Shoot with the fork", newExtension(v1alpha1.AutoscalerFork), newManager(unserved.Apply), newAutoscaler()),
		Entry("in a Shoot without pods to scale", newExtension(v1alpha1.AutoscalerUpstream), newManager(served.Apply)),
		Entry("in a Shoot that is created", newExtension(v1alpha1.AutoscalerUpstream)),
		Entry("before gardenlet has written the manager", newExtension(v1alpha1.AutoscalerUpstream), newManager(), newAutoscaler()),
		Entry("while the server is rolled out", newExtension(v1alpha1.AutoscalerUpstream), newManager(served.Apply, func(d *appsv1.Deployment) error {
			d.Status.Replicas = 2
			return nil
		}), newAutoscaler()),
		Entry("at rest", newExtension(v1alpha1.AutoscalerUpstream), newManager(served.Apply), newAutoscaler(upstream.Apply)),
	)

	It("returns what the API server cannot do", func(ctx context.Context) {
		s := newSeed()
		broken := interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no answer")
		}})
		_, err := (&reconciler{client: broken, reader: broken}).Reconcile(ctx, reconcile.Request{})
		Expect(err).To(MatchError(ContainSubstring("no answer")))
	})
})
