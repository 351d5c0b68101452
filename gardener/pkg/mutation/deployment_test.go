// SPDX-License-Identifier: Apache-2.0

package mutation_test

import (
	"context"
	"os"
	"testing"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component/nodemanagement/machinecontrollermanager"
	fakesecrets "github.com/gardener/gardener/pkg/utils/secrets/manager/fake"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
)

func TestMutation(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Mutation")
}

const (
	namespace = "shoot--project--shop"
	stock     = "gardener/machine-controller-manager:v0.62.1"
)

var ours = mutation.Manager{Image: "evenkeel/machine-controller-manager:v0.1.0", Accounting: machine.AccountingInclusive}

// seed has what gardenlet finds in a Shoot's namespace.
func seed() client.Client {
	return fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "generic-token-kubeconfig"}},
	).Build()
}

// deploy has Gardener's code write the Deployment, over what is there.
func deploy(ctx context.Context, c client.Client, replicas int32) *appsv1.Deployment {
	GinkgoHelper()
	values := machinecontrollermanager.Values{Image: stock, Replicas: replicas}
	Expect(machinecontrollermanager.New(c, namespace, fakesecrets.New(c, namespace), values).Deploy(ctx)).To(Succeed())
	d := &appsv1.Deployment{}
	Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: mutation.DeploymentName}, d)).To(Succeed())
	return d
}

// withProvider adds the container that a provider's webhook adds.
func withProvider(d *appsv1.Deployment) *appsv1.Deployment {
	d.Spec.Template.Spec.Containers = append([]corev1.Container{{
		Name: "machine-controller-manager-provider-local", Image: "provider", Args: []string{"--reserve-accounting=none"},
	}}, d.Spec.Template.Spec.Containers...)
	return d
}

func apply(d *appsv1.Deployment) *appsv1.Deployment {
	GinkgoHelper()
	d = d.DeepCopy()
	Expect(ours.Apply(d)).To(Succeed())
	return d
}

func restore(d *appsv1.Deployment) *appsv1.Deployment {
	d = d.DeepCopy()
	mutation.Restore(d)
	return d
}

// mirror is a webhook that is called after ours, and replaces the registry of each image.
func mirror(d *appsv1.Deployment) *appsv1.Deployment {
	d = d.DeepCopy()
	for i := range d.Spec.Template.Spec.Containers {
		d.Spec.Template.Spec.Containers[i].Image = "mirror.example.com/" + d.Spec.Template.Spec.Containers[i].Image
	}
	return d
}

// content leaves out what each write changes.
func content(d *appsv1.Deployment) *appsv1.Deployment {
	d = d.DeepCopy()
	d.ResourceVersion = ""
	if len(d.Annotations) == 0 {
		d.Annotations = nil
	}
	return d
}

var _ = Describe("The Deployment that gardenlet writes", func() {
	It("runs our image with gardenlet's flags and ours", func(ctx context.Context) {
		before := withProvider(deploy(ctx, seed(), 1))
		after := apply(before)
		Expect(after.Spec.Template.Spec.Containers[1].Image).To(Equal(ours.Image))
		Expect(after.Spec.Template.Spec.Containers[1].Command).To(Equal(append(before.Spec.Template.Spec.Containers[1].Command, "--reserve-accounting=inclusive", "--controllers=*,-capacitybuffer")))
		Expect(after.Labels).To(HaveKeyWithValue(mutation.ManagedLabel, "true"))
		Expect(mutation.IsApplied(after)).To(BeTrue())
		Expect(mutation.IsApplied(before)).To(BeFalse())
	})

	It("runs all controllers where CapacityBuffers are wanted, and not the one for these elsewhere", func(ctx context.Context) {
		before, with := deploy(ctx, seed(), 1), ours
		with.Buffers = true
		once := before.DeepCopy()
		Expect(with.Apply(once)).To(Succeed())
		Expect(once.Spec.Template.Spec.Containers[0].Command).To(Equal(append(before.Spec.Template.Spec.Containers[0].Command, "--reserve-accounting=inclusive")))
		there := once.DeepCopy()
		Expect(ours.Apply(once)).To(Succeed())
		Expect(once).To(Equal(apply(before)), "no longer wanted")
		Expect(with.Apply(once)).To(Succeed())
		Expect(once).To(Equal(there), "wanted again")
		Expect(content(restore(once))).To(Equal(content(before)))
	})

	It("names a controller that the manager has", func() {
		text, err := os.ReadFile("../../../cmd/machine-controller-manager/app/capacitybuffer.go")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(ContainSubstring("const buffersName = \"capacitybuffer\"\n"))
	})

	It("keeps everything else, the provider's container among it", func(ctx context.Context) {
		before := withProvider(deploy(ctx, seed(), 1))
		after := apply(before)
		after.Labels, after.Annotations = before.Labels, before.Annotations
		after.Spec.Template.Spec.Containers[1].Image = before.Spec.Template.Spec.Containers[1].Image
		after.Spec.Template.Spec.Containers[1].Command = before.Spec.Template.Spec.Containers[1].Command
		Expect(after).To(Equal(before))
	})

	It("is not changed again", func(ctx context.Context) {
		once := apply(withProvider(deploy(ctx, seed(), 1)))
		Expect(apply(once)).To(Equal(once))
	})

	It("is not changed again after another webhook has added a flag", func(ctx context.Context) {
		once := apply(deploy(ctx, seed(), 1))
		c := &once.Spec.Template.Spec.Containers[0]
		c.Command = append(c.Command, "--feature=on")
		Expect(apply(once)).To(Equal(once))
	})

	It("becomes the same again after gardenlet has written over it", func(ctx context.Context) {
		c := seed()
		once := apply(deploy(ctx, c, 1))
		Expect(c.Update(ctx, once)).To(Succeed())
		again := deploy(ctx, c, 1)
		Expect(mutation.IsApplied(again)).To(BeFalse(), "gardenlet's write has gardenlet's image")
		Expect(content(apply(again))).To(Equal(content(once)))
	})

	It("becomes what gardenlet wrote", func(ctx context.Context) {
		before := withProvider(deploy(ctx, seed(), 1))
		Expect(content(restore(apply(before)))).To(Equal(content(before)))
		Expect(restore(before)).To(Equal(before), "what was never changed stays")
		Expect(restore(restore(apply(before)))).To(Equal(restore(apply(before))))
	})

	It("stays as it is where the image that gardenlet wrote is lost, until gardenlet writes again", func(ctx context.Context) {
		c := seed()
		before := deploy(ctx, c, 1)
		once := apply(before)
		delete(once.Annotations, mutation.ReplacedImageAnnotation)
		Expect(restore(once)).To(Equal(once), "the API server would refuse one without an image")
		Expect(c.Update(ctx, once)).To(Succeed())
		Expect(content(restore(deploy(ctx, c, 1)))).To(Equal(content(before)))
	})

	It("becomes what gardenlet wrote last", func(ctx context.Context) {
		c := seed()
		before := deploy(ctx, c, 1)
		Expect(c.Update(ctx, apply(before))).To(Succeed())
		Expect(content(restore(deploy(ctx, c, 1)))).To(Equal(content(before)))
	})

	It("keeps the image that gardenlet wrote when ours is a newer one", func(ctx context.Context) {
		before := deploy(ctx, seed(), 1)
		newer := apply(before)
		Expect(mutation.Manager{Image: "evenkeel/machine-controller-manager:v0.2.0", Accounting: machine.AccountingAdditive}.Apply(newer)).To(Succeed())
		Expect(newer.Spec.Template.Spec.Containers[0].Image).To(HaveSuffix("v0.2.0"))
		Expect(newer.Spec.Template.Spec.Containers[0].Command).To(ContainElement("--reserve-accounting=additive"))
		Expect(newer.Spec.Template.Spec.Containers[0].Command).NotTo(ContainElement("--reserve-accounting=inclusive"))
		Expect(content(restore(newer))).To(Equal(content(before)))
	})

	It("is changed although another webhook has replaced the registry of the image", func(ctx context.Context) {
		before := deploy(ctx, seed(), 1)
		mirrored := mirror(apply(before))
		Expect(mutation.IsApplied(mirrored)).To(BeTrue())
		Expect(apply(mirrored)).To(Equal(apply(before)))
		Expect(content(restore(mirrored))).To(Equal(content(before)))
	})

	It("becomes what gardenlet wrote last, also where gardenlet writes our image", func(ctx context.Context) {
		c := seed()
		Expect(c.Update(ctx, apply(deploy(ctx, c, 1)))).To(Succeed())
		again := deploy(ctx, c, 1)
		again.Spec.Template.Spec.Containers[0].Image = ours.Image
		Expect(mutation.IsApplied(again)).To(BeFalse(), "it has no flag of ours")
		Expect(mutation.IsApplied(apply(again))).To(BeTrue())
		Expect(content(restore(apply(again)))).To(Equal(content(restore(again))))
	})

	It("keeps the replicas of a hibernated Shoot", func(ctx context.Context) {
		Expect(apply(deploy(ctx, seed(), 0)).Spec.Replicas).To(HaveValue(BeZero()))
	})

	DescribeTable("stays as it is where it is not as expected", func(ctx context.Context, change func(*appsv1.Deployment)) {
		d := deploy(ctx, seed(), 1)
		change(d)
		before := d.DeepCopy()
		Expect(ours.Apply(d)).NotTo(Succeed())
		Expect(d).To(Equal(before))
	},
		Entry("no such container", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Name = "mcm" }),
		Entry("no containers", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers = nil }),
		Entry("no command", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Command = nil }),
	)
})
