// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"

	"github.com/evenkeel/evenkeel/test/fixture"
)

func (c *cluster) bind(pod, node string) {
	GinkgoHelper()
	Expect(c.assign(pod, node)).To(Succeed())
}

func (c *cluster) assign(pod, node string) error {
	return c.core.CoreV1().Pods(fixture.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, create)
}

func (c *cluster) scales() scale.ScalesGetter {
	GinkgoHelper()
	found := memory.NewMemCacheClient(c.core.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(found)
	scales, err := scale.NewForConfig(c.config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(c.core.Discovery()))
	Expect(err).NotTo(HaveOccurred())
	return scales
}

func (c *cluster) subresources() {
	c.scaleSubresource()
	c.podSubresources()
}

// scaleSubresource specifies scale.
func (c *cluster) scaleSubresource() {
	It("scale shows and changes the replicas of an object", func() {
		u := c.createGenerated(deployments, fixture.MachineDeployment("conformance", 3))
		u, err := c.of(deployments).UpdateStatus(ctx, set(u, int64(2), "status", "replicas"), update)
		Expect(err).NotTo(HaveOccurred())
		scales := c.scales().Scales(fixture.Namespace)
		s, err := scales.Get(ctx, deployments.GroupResource(), u.GetName(), get)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Spec.Replicas).To(BeEquivalentTo(3))
		Expect(s.Status.Replicas).To(BeEquivalentTo(2))
		Expect(s.ResourceVersion).To(Equal(u.GetResourceVersion()))
		Expect(s.UID).To(Equal(u.GetUID()))
		s.Spec.Replicas = 5
		s, err = scales.Update(ctx, deployments.GroupResource(), s, update)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Spec.Replicas).To(BeEquivalentTo(5))
		changed, err := c.of(deployments).Get(ctx, u.GetName(), get)
		Expect(err).NotTo(HaveOccurred())
		Expect(field(changed, "spec", "replicas")).To(BeEquivalentTo(5))
		Expect(changed.GetGeneration()).To(Equal(u.GetGeneration() + 1))
		Expect(changed.GetResourceVersion()).To(Equal(s.ResourceVersion))
	})

	It("scale is guarded by the resourceVersion", func() {
		u := c.createGenerated(deployments, fixture.MachineDeployment("conformance", 3))
		scales := c.scales().Scales(fixture.Namespace)
		s, err := scales.Get(ctx, deployments.GroupResource(), u.GetName(), get)
		Expect(err).NotTo(HaveOccurred())
		_, err = scales.Patch(ctx, deployments, u.GetName(), types.MergePatchType, []byte(`{"spec":{"replicas":4}}`), patch)
		Expect(err).NotTo(HaveOccurred())
		s.Spec.Replicas = 5
		_, err = scales.Update(ctx, deployments.GroupResource(), s, update)
		Expect(err).To(Satisfy(apierrors.IsConflict))
		s.ResourceVersion = ""
		s, err = scales.Update(ctx, deployments.GroupResource(), s, update)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Spec.Replicas).To(BeEquivalentTo(5))
		_, err = scales.Patch(ctx, deployments, u.GetName(), types.MergePatchType, []byte(`{"spec":{"replicas":-1}}`), patch)
		Expect(err).To(Satisfy(apierrors.IsInvalid))
	})

	It("scale is not there for every kind", func() {
		u := c.machine()
		_, err := c.of(machines).Get(ctx, u.GetName(), get, "scale")
		Expect(err).To(Or(Satisfy(apierrors.IsNotFound), Satisfy(apierrors.IsMethodNotSupported)))
	})
}

// podSubresources specifies binding and eviction.
func (c *cluster) podSubresources() {
	It("binding gives a pod its node, once", func() {
		u := c.pod()
		node := c.createGenerated(nodes, fixture.Node("conformance"))
		c.bind(u.GetName(), node.GetName())
		pod, err := c.core.CoreV1().Pods(fixture.Namespace).Get(ctx, u.GetName(), get)
		Expect(err).NotTo(HaveOccurred())
		Expect(pod.Spec.NodeName).To(Equal(node.GetName()))
		Expect(pod.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.PodScheduled), HaveField("Status", corev1.ConditionTrue))))
		Expect(c.assign(u.GetName(), "another")).To(Satisfy(apierrors.IsConflict))
		Expect(c.assign("conformance-absent", "another")).To(Satisfy(apierrors.IsNotFound))
	})

	It("eviction deletes a pod", func() {
		u := c.pod()
		eviction := &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: u.GetName(), Namespace: fixture.Namespace}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64)},
		}
		Expect(c.core.PolicyV1().Evictions(fixture.Namespace).Evict(ctx, eviction)).To(Succeed())
		_, err := c.of(pods).Get(ctx, u.GetName(), get)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
	})
}

func (c *cluster) discovery() {
	It("leads from kinds to resources", func() {
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.core.Discovery()))
		for kind, want := range map[schema.GroupKind]schema.GroupVersionResource{
			{Group: "machine.sapcloud.io", Kind: "MachineDeployment"}: deployments,
			{Kind: "Node"}: nodes,
			{Group: "coordination.k8s.io", Kind: "Lease"}: {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
		} {
			mapping, err := mapper.RESTMapping(kind)
			Expect(err).NotTo(HaveOccurred())
			Expect(mapping.Resource).To(Equal(want))
			Expect(mapping.Scope.Name() == meta.RESTScopeNameRoot).To(Equal(want == nodes))
		}
	})

	It("tells the version, and that it is ready", func() {
		version, err := c.core.Discovery().ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(version.Major).To(Equal("1"))
		raw, err := c.core.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(raw)).To(Equal("ok"))
	})

	It("does not know what is not served", func() {
		_, err := c.any.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}).List(ctx, metav1.ListOptions{})
		Expect(err).To(Satisfy(apierrors.IsNotFound))
	})
}
