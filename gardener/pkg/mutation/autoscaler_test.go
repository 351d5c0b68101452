// SPDX-License-Identifier: Apache-2.0

package mutation_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/component/autoscaling/clusterautoscaler"
	fakesecrets "github.com/gardener/gardener/pkg/utils/secrets/manager/fake"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
)

const fork = "gardener/cluster-autoscaler:v1.36.0"

var upstream = mutation.Autoscaler{Image: "autoscaling/cluster-autoscaler:v1.36.1", Files: "0123"}

// serving is the manager with the server.
var serving = mutation.Manager{Image: ours.Image, Accounting: ours.Accounting, Server: &mutation.Server{Authority: "4567"}}

// deployAutoscaler has Gardener's code write the Deployment, over what is there, with every flag that it may have.
func deployAutoscaler(ctx context.Context, c client.Client) *appsv1.Deployment {
	GinkgoHelper()
	version := semver.MustParse("1.36.0")
	settings := &gardencorev1beta1.ClusterAutoscaler{StartupTaints: []string{"s"}, StatusTaints: []string{"t"}, IgnoreTaints: []string{"i"}}
	workers := []gardencorev1beta1.Worker{{MachineControllerManagerSettings: &gardencorev1beta1.MachineControllerManagerSettings{AutoPreserveFailedMachineMax: ptr.To[int32](1)}}}
	component := clusterautoscaler.New(c, namespace, fakesecrets.New(c, namespace), fork, 1, settings, workers, version, version)
	component.SetMachineDeployments([]extensionsv1alpha1.MachineDeployment{{Name: "shop-z1", Minimum: 3, Maximum: 9}})
	Expect(component.Deploy(ctx)).To(Succeed())
	d := &appsv1.Deployment{}
	Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: mutation.AutoscalerName}, d)).To(Succeed())
	return d
}

func applyAutoscaler(d *appsv1.Deployment) *appsv1.Deployment {
	GinkgoHelper()
	d = d.DeepCopy()
	Expect(upstream.Apply(d)).To(Succeed())
	return d
}

func restoreAutoscaler(d *appsv1.Deployment) *appsv1.Deployment {
	d = d.DeepCopy()
	mutation.RestoreAutoscaler(d)
	return d
}

var _ = Describe("The autoscaler that gardenlet writes", func() {
	It("becomes the unmodified one, with the settings of the Shoot", func(ctx context.Context) {
		before := deployAutoscaler(ctx, seed())
		after := applyAutoscaler(before)
		c := after.Spec.Template.Spec.Containers[0]
		Expect(c.Image).To(Equal(upstream.Image))
		Expect(c.Command[:3]).To(Equal([]string{"./cluster-autoscaler", "--cloud-provider=externalgrpc", "--cloud-config=/etc/cluster-autoscaler/evenkeel/cloud-config.yaml"}))
		Expect(c.Command).To(ContainElements("--address=:8085", "--expander=least-waste", "--force-ds=true", "--startup-taint=s", "--status-taint=t", "--ignore-taint=i", "--max-total-unready-percentage=100"))
		Expect(c.Command).NotTo(ContainElement(Or(HavePrefix("--nodes="), Equal("--cloud-provider=mcm"))))
		// Each flag of gardenlet is kept but these, so a new one is seen here.
		var dropped []string
		for _, argument := range before.Spec.Template.Spec.Containers[0].Command {
			if !slices.Contains(c.Command, argument) {
				dropped = append(dropped, argument)
			}
		}
		Expect(dropped).To(ConsistOf("--cloud-provider=mcm", "--nodes=3:9:"+namespace+".shop-z1"))
		Expect(c.VolumeMounts).To(ContainElement(HaveField("MountPath", nodegroups.ClientFolder)))
		Expect(after.Spec.Template.Spec.Volumes).To(ContainElement(HaveField("VolumeSource.Secret", HaveValue(HaveField("SecretName", nodegroups.ClientName)))))
		Expect(after.Spec.Template.Labels).To(HaveKeyWithValue("networking.resources.gardener.cloud/to-extension-evenkeel-nodegroups-tcp-8086", "allowed"))
		Expect(after.Spec.Template.Annotations).To(ContainElement("0123"))
		Expect(mutation.IsUpstream(after)).To(BeTrue())
		Expect(mutation.IsUpstream(before)).To(BeFalse())
	})

	It("drops a flag that the unmodified one does not know", func(ctx context.Context) {
		d := deployAutoscaler(ctx, seed())
		c := &d.Spec.Template.Spec.Containers[0]
		c.Command = append(c.Command, "--feature-of-the-fork=on", "--feature-gates=A=true")
		Expect(applyAutoscaler(d).Spec.Template.Spec.Containers[0].Command).NotTo(ContainElement(HavePrefix("--feature-")))
	})

	It("is not changed again, and starts anew with other files", func(ctx context.Context) {
		once := applyAutoscaler(deployAutoscaler(ctx, seed()))
		Expect(applyAutoscaler(once)).To(Equal(once))
		other := once.DeepCopy()
		Expect(mutation.Autoscaler{Image: upstream.Image, Files: "89ab"}.Apply(other)).To(Succeed())
		Expect(other.Spec.Template.Annotations).NotTo(Equal(once.Spec.Template.Annotations))
		other.Spec.Template.Annotations = once.Spec.Template.Annotations
		Expect(other).To(Equal(once))
	})

	It("becomes the same again after gardenlet has written over it", func(ctx context.Context) {
		c := seed()
		once := applyAutoscaler(deployAutoscaler(ctx, c))
		Expect(c.Update(ctx, once)).To(Succeed())
		again := deployAutoscaler(ctx, c)
		Expect(mutation.IsUpstream(again)).To(BeFalse(), "gardenlet's write has the fork")
		Expect(content(applyAutoscaler(again))).To(Equal(content(once)))
	})

	It("becomes what gardenlet wrote", func(ctx context.Context) {
		c := seed()
		before := deployAutoscaler(ctx, c)
		Expect(content(restoreAutoscaler(applyAutoscaler(before)))).To(Equal(content(before)))
		Expect(restoreAutoscaler(before)).To(Equal(before), "what was never changed stays")
		Expect(c.Update(ctx, applyAutoscaler(before))).To(Succeed())
		Expect(content(restoreAutoscaler(deployAutoscaler(ctx, c)))).To(Equal(content(before)), "over the unmodified one")
	})

	It("is the unmodified one although another webhook has replaced the registry of the image", func(ctx context.Context) {
		before := deployAutoscaler(ctx, seed())
		mirrored := mirror(applyAutoscaler(before))
		Expect(mutation.IsUpstream(mirrored)).To(BeTrue())
		Expect(applyAutoscaler(mirrored)).To(Equal(applyAutoscaler(before)))
		Expect(content(restoreAutoscaler(mirrored))).To(Equal(content(before)))
	})

	It("stays what it is where the fork's command is lost", func(ctx context.Context) {
		d := applyAutoscaler(deployAutoscaler(ctx, seed()))
		d.Annotations["evenkeel.extensions.gardener.cloud/replaced-command"] = "{"
		Expect(restoreAutoscaler(d)).To(Equal(d))
		before := d.DeepCopy()
		Expect(upstream.Apply(d)).NotTo(Succeed())
		Expect(d).To(Equal(before))
	})

	DescribeTable("stays as it is where it is not as expected", func(ctx context.Context, change func(*appsv1.Deployment)) {
		d := deployAutoscaler(ctx, seed())
		change(d)
		before := d.DeepCopy()
		Expect(upstream.Apply(d)).NotTo(Succeed())
		Expect(d).To(Equal(before))
	},
		Entry("no such container", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Name = "ca" }),
		Entry("no command", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Command = nil }),
		Entry("another provider", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Command = []string{"./cluster-autoscaler", "--cloud-provider=aws"}
		}),
		Entry("another Deployment", func(d *appsv1.Deployment) { d.Name = "other" }),
		Entry("more pools than can be remembered", func(d *appsv1.Deployment) {
			c := &d.Spec.Template.Spec.Containers[0]
			for i := range 4000 {
				c.Command = append(c.Command, fmt.Sprintf("--nodes=0:9:%[1]s.%[1]s-pool-%[2]d-z1", namespace, i))
			}
		}),
	)
})

var _ = Describe("The manager that serves cluster-autoscaler", func() {
	serve := func(d *appsv1.Deployment) *appsv1.Deployment {
		GinkgoHelper()
		d = d.DeepCopy()
		Expect(serving.Apply(d)).To(Succeed())
		return d
	}

	It("has the flags, and the files that they name", func(ctx context.Context) {
		d := serve(withProvider(deploy(ctx, seed(), 1)))
		c := d.Spec.Template.Spec.Containers[1]
		Expect(c.Command).To(ContainElements("--autoscaler-listen-address=:8086", "--autoscaler-tls-cert-file=/var/run/evenkeel/nodegroups/tls.crt",
			"--autoscaler-tls-key-file=/var/run/evenkeel/nodegroups/tls.key", "--autoscaler-tls-client-ca-file=/var/run/evenkeel/nodegroups/ca.crt"))
		Expect(c.VolumeMounts).To(ContainElement(HaveField("MountPath", "/var/run/evenkeel/nodegroups")))
		Expect(d.Spec.Template.Spec.Containers[0]).To(Equal(withProvider(deploy(ctx, seed(), 1)).Spec.Template.Spec.Containers[0]))
		Expect(d.Spec.Template.Spec.Volumes).To(ContainElement(HaveField("VolumeSource.Secret", HaveValue(HaveField("SecretName", nodegroups.ServerName)))))
		Expect(mutation.IsServing(d)).To(BeTrue())
		Expect(mutation.ServerOf(d)).To(Equal(serving.Server))
	})

	It("is not changed again, and becomes the same again after gardenlet has written over it", func(ctx context.Context) {
		c := seed()
		once := serve(deploy(ctx, c, 1))
		Expect(serve(once)).To(Equal(once))
		Expect(c.Update(ctx, once)).To(Succeed())
		again := deploy(ctx, c, 1)
		Expect(mutation.IsServing(again)).To(BeFalse())
		Expect(content(serve(again))).To(Equal(content(once)))
	})

	It("becomes a manager without server, and what gardenlet wrote", func(ctx context.Context) {
		before := withProvider(deploy(ctx, seed(), 1))
		served := serve(before)
		Expect(apply(served)).To(Equal(apply(before)))
		Expect(content(restore(served))).To(Equal(content(before)))
		mutation.WithoutServer(served)
		Expect(served).To(Equal(apply(before)))
		mutation.WithoutServer(served)
		Expect(served).To(Equal(apply(before)), "again, it stays the same")
	})

	DescribeTable("does not serve without", func(ctx context.Context, change func(*appsv1.Deployment)) {
		d := serve(deploy(ctx, seed(), 1))
		change(d)
		Expect(mutation.IsServing(d)).To(BeFalse())
		Expect(mutation.ServerOf(d)).To(BeNil())
	},
		Entry("our image", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = stock }),
		Entry("its certificates", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Volumes = []corev1.Volume{} }),
		Entry("one of the flags", func(d *appsv1.Deployment) {
			c := &d.Spec.Template.Spec.Containers[0]
			c.Command = slices.DeleteFunc(c.Command, func(a string) bool { return a == "--autoscaler-listen-address=:8086" })
		}),
		Entry("its name", func(d *appsv1.Deployment) { d.Name = "other" }),
	)

	DescribeTable("is rolled out when no pod runs what it ran before", func(status appsv1.DeploymentStatus, rolledOut bool) {
		d := &appsv1.Deployment{Status: status}
		d.Generation = 2
		Expect(mutation.IsRolledOut(d)).To(Equal(rolledOut))
	},
		Entry(nil, appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1}, true),
		Entry("not seen yet", appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1}, false),
		Entry("an old pod is left", appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1}, false),
		Entry("no new pod yet", appsv1.DeploymentStatus{ObservedGeneration: 2}, false),
		Entry("an old pod is still ending", appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, TerminatingReplicas: ptr.To[int32](1)}, false),
		Entry("the old pod has ended", appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, TerminatingReplicas: ptr.To[int32](0)}, true),
	)
})
