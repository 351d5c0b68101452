// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"testing"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/pkg/accepted"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
)

func TestWebhook(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Webhook")
}

const (
	namespace = "shoot--project--shop"
	ours      = "evenkeel/machine-controller-manager:v0.1.0"
	upstream  = "autoscaling/cluster-autoscaler:v1.36.1"
	stock     = "gardener/machine-controller-manager:v0.62.1"
)

// newExtension has accepted a configuration with two machines in reserve.
func newExtension(change ...func(*extensionsv1alpha1.Extension, *accepted.State)) *extensionsv1alpha1.Extension {
	GinkgoHelper()
	config, err := v1alpha1.Decode([]byte(`{"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig","pools":[{"name":"shop","excess":2}]}`))
	Expect(err).NotTo(HaveOccurred())
	ex := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "evenkeel", Finalizers: []string{"x/y"}}}
	state := &accepted.State{Config: config}
	for _, c := range change {
		c(ex, state)
	}
	if state.Config != nil {
		Expect(state.Write(ex)).To(Succeed())
	}
	return ex
}

func deleted(ex *extensionsv1alpha1.Extension, _ *accepted.State) {
	ex.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}

func drained(_ *extensionsv1alpha1.Extension, s *accepted.State) { s.Drained = true }

func neverAccepted(_ *extensionsv1alpha1.Extension, s *accepted.State) { s.Config = nil }

// newDeployment is what gardenlet writes, in short: see package mutation for the real one.
func newDeployment(image string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: mutation.DeploymentName, Labels: map[string]string{"role": mutation.DeploymentName}},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "machine-controller-manager-provider-local", Image: "provider"},
			{Name: mutation.DeploymentName, Image: image, Command: []string{"./machine-controller-manager"}},
		}}}},
	}
}

func newWorker() *extensionsv1alpha1.Worker {
	return &extensionsv1alpha1.Worker{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
		Spec:       extensionsv1alpha1.WorkerSpec{Pools: []extensionsv1alpha1.WorkerPool{{Name: "shop", Minimum: 3, Maximum: 9}}},
	}
}

func reader(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(objects...).Build()
}

// mutate returns an object as it is written.
func mutate[T client.Object](ctx context.Context, r client.Reader, object T) T {
	GinkgoHelper()
	Expect((&mutator{reader: r, images: Images{Manager: ours, Autoscaler: upstream}}).Mutate(ctx, object, nil)).To(Succeed(), "no request is refused")
	return object
}

func imageOf(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[1].Image }

// brokenReader fails as the API server may, or worse.
func brokenReader(get func() error) client.Reader {
	return fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return get()
		},
	}).Build()
}

var _ = Describe("The webhook", func() {
	It("has a Shoot with the extension run Evenkeel", func(ctx context.Context) {
		d := mutate(ctx, reader(newExtension()), newDeployment(stock))
		Expect(imageOf(d)).To(Equal(ours))
		Expect(mutate(ctx, reader(newExtension()), d.DeepCopy())).To(Equal(d))
		w := mutate(ctx, reader(newExtension()), newWorker())
		Expect(w.Spec.Pools[0].Annotations).To(Equal(map[string]string{machine.BoundsAnnotation: "3:9:2"}))
	})

	It("has its manager run the controller of CapacityBuffers only where these are wanted", func(ctx context.Context) {
		without := ContainElement(ContainSubstring("-capacitybuffer"))
		d := mutate(ctx, reader(newExtension()), newDeployment(stock))
		Expect(d.Spec.Template.Spec.Containers[1].Command).To(without)
		wanting := newExtension(func(_ *extensionsv1alpha1.Extension, s *accepted.State) { s.Config.CapacityBuffers = true })
		Expect(mutate(ctx, reader(wanting), d).Spec.Template.Spec.Containers[1].Command).NotTo(without)
	})

	It("keeps Evenkeel until the reserve is drained, and requests none", func(ctx context.Context) {
		Expect(imageOf(mutate(ctx, reader(newExtension(deleted)), newDeployment(stock)))).To(Equal(ours))
		Expect(mutate(ctx, reader(newExtension(deleted)), newWorker())).To(Equal(newWorker()))
	})

	DescribeTable("restores what gardenlet wrote", func(ctx context.Context, objects ...client.Object) {
		before := mutate(ctx, reader(newExtension()), newDeployment(stock))
		after := mutate(ctx, reader(objects...), before.DeepCopy())
		Expect(imageOf(after)).To(Equal(stock))
		Expect(after.Labels).NotTo(HaveKey(mutation.ManagedLabel))
		Expect(after.Spec).To(Equal(newDeployment(stock).Spec))
	},
		Entry("when the reserve is drained", newExtension(deleted, drained)),
		Entry("when there is no Extension any more"),
	)

	DescribeTable("changes nothing", func(ctx context.Context, r func() client.Reader) {
		Expect(mutate(ctx, r(), newDeployment(stock))).To(Equal(newDeployment(stock)))
		Expect(mutate(ctx, r(), newWorker())).To(Equal(newWorker()))
	},
		Entry("without an Extension", func() client.Reader { return reader() }),
		Entry("before a configuration was accepted", func() client.Reader { return reader(newExtension(neverAccepted)) }),
		Entry("if the state cannot be read", func() client.Reader {
			ex := newExtension()
			ex.Status.State = &runtime.RawExtension{Raw: []byte(`{"config":3}`)}
			return reader(ex)
		}),
		Entry("if the Extension cannot be read", func() client.Reader { return brokenReader(func() error { return errors.New("no answer") }) }),
		Entry("if it panics", func() client.Reader { return brokenReader(func() error { panic("defect") }) }),
	)

	It("leaves a pool alone whose reserve it cannot read, as after a downgrade, and no other", func(ctx context.Context) {
		ex := newExtension(func(_ *extensionsv1alpha1.Extension, s *accepted.State) {
			s.Config.Pools = append(s.Config.Pools, v1alpha1.Pool{Name: "second", Bounds: "1:3:later"})
		})
		w := newWorker()
		w.Spec.Pools = append(w.Spec.Pools, extensionsv1alpha1.WorkerPool{Name: "second", Maximum: 3})
		mutate(ctx, reader(ex), w)
		Expect(w.Spec.Pools[0].Annotations).To(Equal(map[string]string{machine.BoundsAnnotation: "3:9:2"}))
		Expect(w.Spec.Pools[1].Annotations).To(BeEmpty())
	})

	It("leaves other objects alone", func(ctx context.Context) {
		other, gone := newDeployment(stock), newDeployment(stock)
		other.Name = "kube-apiserver"
		gone.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		for _, d := range []*appsv1.Deployment{other, gone} {
			before := d.DeepCopy()
			Expect(mutate(ctx, reader(newExtension()), d)).To(Equal(before))
		}
	})
})

var _ = Describe("The webhooks' registration", func() {
	// registered are the webhooks by their names.
	registered := func() map[string]selection {
		GinkgoHelper()
		switches := Switches(func() Images { return Images{Manager: ours, Autoscaler: upstream} })
		Expect(switches.Complete()).To(Succeed())
		all, err := switches.Completed().WebhooksFactory(fakeManager{client: reader(newExtension())})
		Expect(err).NotTo(HaveOccurred())
		found := map[string]selection{}
		for _, w := range all {
			Expect(w.FailurePolicy).To(HaveValue(Equal(admissionregistrationv1.Ignore)), w.Name)
			Expect(w.TimeoutSeconds).To(HaveValue(BeNumerically("<=", 5)), w.Name)
			found[w.Name] = selection{w.NamespaceSelector, w.ObjectSelector, w.Webhook.Handler}
		}
		return found
	}

	DescribeTable("selects", func(namespaceLabels, objectLabels labels.Set, names ...string) {
		var matching []string
		for name, s := range registered() {
			if name != WorkerName && s.matches(namespaceLabels, objectLabels) {
				matching = append(matching, name)
			}
		}
		Expect(matching).To(ConsistOf(names))
	},
		Entry("no Deployment of a Shoot without the extension", labels.Set{}, labels.Set{"role": mutation.DeploymentName}),
		Entry("that of a Shoot with the extension", labels.Set{namespaceLabel: "true"}, labels.Set{"role": mutation.DeploymentName}, ManagerName),
		Entry("once, if it is changed already", labels.Set{namespaceLabel: "true"}, labels.Set{"role": mutation.DeploymentName, mutation.ManagedLabel: "true"}, ManagerName),
		Entry("no other Deployment of that Shoot", labels.Set{namespaceLabel: "true"}, labels.Set{"role": "kube-apiserver"}),
		Entry("the autoscaler of a Shoot with the extension", labels.Set{namespaceLabel: "true"}, labels.Set{"role": mutation.AutoscalerName}, AutoscalerName),
		Entry("no autoscaler of another Shoot", labels.Set{}, labels.Set{"role": mutation.AutoscalerName}),
		Entry("the autoscaler of a Shoot that leaves, if it is changed", labels.Set{}, labels.Set{"role": mutation.AutoscalerName, mutation.ManagedLabel: "true"}, LeavingName),
		Entry("that of a Shoot that leaves", labels.Set{}, labels.Set{"role": mutation.DeploymentName, mutation.ManagedLabel: "true"}, LeavingName),
	)

	DescribeTable("answer with a patch of what changes and nothing else", func(ctx context.Context, name, kind, object string, paths ...string) {
		response := registered()[name].handler.Handle(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Kind: kinds[kind], Object: runtime.RawExtension{Raw: []byte(object)},
		}})
		Expect(response.Allowed).To(BeTrue())
		var changed []string
		for _, p := range response.Patches {
			changed = append(changed, p.Operation+" "+p.Path)
		}
		Expect(changed).To(ConsistOf(paths))
	},
		Entry("for the Deployment", ManagerName, "Deployment", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shoot--project--shop","name":"machine-controller-manager"},
			"spec":{"unknown":1,"template":{"spec":{"containers":[{"name":"provider","unknown":2},{"name":"machine-controller-manager","image":"a","command":["b"],"unknown":3}]}}}}`,
			"add /metadata/annotations", "add /metadata/labels", "replace /spec/template/spec/containers/1/image", "add /spec/template/spec/containers/1/command/1", "add /spec/template/spec/containers/1/command/2"),
		Entry("for the Worker", WorkerName, "Worker", `{"apiVersion":"extensions.gardener.cloud/v1alpha1","kind":"Worker","metadata":{"namespace":"shoot--project--shop","name":"shop"},
			"spec":{"unknown":1,"pools":[{"name":"other","minimum":1,"maximum":3},{"name":"shop","minimum":3,"maximum":9,"unknown":2}]}}`,
			"add /spec/pools/1/annotations"),
	)
})

var kinds = map[string]metav1.GroupVersionKind{
	"Deployment": {Group: "apps", Version: "v1", Kind: "Deployment"},
	"Worker":     {Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: "Worker"},
}

// fakeManager is as much of a manager as a webhook needs.
type fakeManager struct {
	manager.Manager
	client client.Client
}

func (m fakeManager) GetScheme() *runtime.Scheme { return kubernetes.SeedScheme }

func (m fakeManager) GetClient() client.Client { return m.client }

// selection is what a webhook is called for.
type selection struct {
	namespaces, objects *metav1.LabelSelector
	handler             admission.Handler
}

func (s selection) matches(namespaceLabels, objectLabels labels.Set) bool {
	GinkgoHelper()
	namespaces, err := metav1.LabelSelectorAsSelector(s.namespaces)
	Expect(err).NotTo(HaveOccurred())
	objects, err := metav1.LabelSelectorAsSelector(s.objects)
	Expect(err).NotTo(HaveOccurred())
	return namespaces.Matches(namespaceLabels) && objects.Matches(objectLabels)
}
