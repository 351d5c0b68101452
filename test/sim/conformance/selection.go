// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/test/fixture"
)

// listed returns the names of the objects that options select.
func (c *cluster) listed(gvr schema.GroupVersionResource, options metav1.ListOptions) []string {
	GinkgoHelper()
	list, err := c.of(gvr).List(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	names := []string{}
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	return names
}

func (c *cluster) selection() {
	It("is by label", func() {
		one, two := c.configMap(), c.configMap()
		label := "evenkeel.dev/conformance"
		one.SetLabels(map[string]string{label: one.GetName()})
		_, err := c.of(configMaps).Update(ctx, one, update)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.listed(configMaps, metav1.ListOptions{LabelSelector: label + "=" + one.GetName()})).To(ConsistOf(one.GetName()))
		Expect(c.listed(configMaps, metav1.ListOptions{LabelSelector: label + " in (" + one.GetName() + ",x)"})).To(ConsistOf(one.GetName()))
		Expect(c.listed(configMaps, metav1.ListOptions{LabelSelector: "!" + label})).To(And(ContainElement(two.GetName()), Not(ContainElement(one.GetName()))))
	})

	It("is by the fields that a kind offers", func() {
		one := c.configMap()
		c.configMap()
		Expect(c.listed(configMaps, metav1.ListOptions{FieldSelector: "metadata.name=" + one.GetName()})).To(ConsistOf(one.GetName()))
		m := c.machine()
		Expect(c.listed(machines, metav1.ListOptions{FieldSelector: "metadata.name=" + m.GetName() + ",metadata.namespace=default"})).To(ConsistOf(m.GetName()))
		_, err := c.of(machines).List(ctx, metav1.ListOptions{FieldSelector: "spec.providerID=x"})
		Expect(err).To(Satisfy(apierrors.IsBadRequest))
	})

	It("finds the pods of a node, and those of none", func() {
		u := c.pod()
		Expect(c.listed(pods, metav1.ListOptions{FieldSelector: "spec.nodeName="})).To(ContainElement(u.GetName()))
		node := c.createGenerated(nodes, fixture.Node("conformance"))
		c.bind(u.GetName(), node.GetName())
		Expect(c.listed(pods, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.GetName()})).To(ConsistOf(u.GetName()))
		Expect(c.listed(pods, metav1.ListOptions{FieldSelector: "spec.nodeName=,status.phase=Pending"})).NotTo(ContainElement(u.GetName()))
	})

	It("finds the nodes that are not cordoned", func() {
		free := c.createGenerated(nodes, fixture.Node("conformance"))
		cordoned := c.createGenerated(nodes, fixture.Node("conformance", func(n *corev1.Node) { n.Spec.Unschedulable = true }))
		Expect(c.listed(nodes, metav1.ListOptions{FieldSelector: "spec.unschedulable=false"})).To(
			And(ContainElement(free.GetName()), Not(ContainElement(cordoned.GetName()))))
	})

	It("keeps to the namespace, or to all of them", func() {
		u := c.configMap()
		all, err := c.any.Resource(configMaps).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + u.GetName()})
		Expect(err).NotTo(HaveOccurred())
		Expect(all.Items).To(HaveLen(1))
		none, err := c.any.Resource(configMaps).Namespace("kube-system").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + u.GetName()})
		Expect(err).NotTo(HaveOccurred())
		Expect(none.Items).To(BeEmpty())
	})
}
