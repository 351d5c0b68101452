// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/test/fixture"
)

func (c *cluster) generation() {
	It("counts changes of what is wanted", func() {
		u := c.createGenerated(deployments, fixture.MachineDeployment("conformance", 1))
		Expect(u.GetGeneration()).To(BeEquivalentTo(1))
		u, err := c.of(deployments).Update(ctx, set(u, int64(2), "spec", "replicas"), update)
		Expect(err).NotTo(HaveOccurred())
		Expect(u.GetGeneration()).To(BeEquivalentTo(2))
		u, err = c.of(deployments).Update(ctx, set(u, "b", "metadata", "annotations", "a"), update)
		Expect(err).NotTo(HaveOccurred())
		Expect(u.GetGeneration()).To(BeEquivalentTo(2))
		u, err = c.of(deployments).UpdateStatus(ctx, set(u, int64(2), "status", "replicas"), update)
		Expect(err).NotTo(HaveOccurred())
		Expect(u.GetGeneration()).To(BeEquivalentTo(2))
	})

	It("counts that the object is going", func() {
		m := c.machine()
		m.SetFinalizers([]string{"evenkeel.dev/conformance"})
		m, err := c.of(machines).Update(ctx, m, update)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.of(machines).Delete(ctx, m.GetName(), metav1.DeleteOptions{})).To(Succeed())
		m, err = c.of(machines).Get(ctx, m.GetName(), get)
		Expect(err).NotTo(HaveOccurred())
		Expect(m.GetGeneration()).To(BeEquivalentTo(2))
	})

	It("counts all changes but metadata's where there is no status subresource", func() {
		u := c.createGenerated(machineclasses, fixture.MachineClass("conformance"))
		u, err := c.of(machineclasses).Update(ctx, set(u, "other", "provider"), update)
		Expect(err).NotTo(HaveOccurred())
		Expect(u.GetGeneration()).To(BeEquivalentTo(2))
		_, err = c.of(machineclasses).UpdateStatus(ctx, u, update)
		Expect(err).To(Or(Satisfy(apierrors.IsNotFound), Satisfy(apierrors.IsMethodNotSupported)))
	})

	It("is not counted for kinds that have none", func() {
		u := c.configMap()
		Expect(u.GetGeneration()).To(BeZero())
	})
}

const phase = "Running"

func running(u *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	return set(u, map[string]any{"phase": phase, "lastUpdateTime": "2030-01-01T00:00:00Z"}, "status", "currentStatus")
}

func (c *cluster) status() {
	c.statusWrites()
	c.builtInStatus()
	c.storedForms()
}

// statusWrites specifies writes of the status of custom resources.
func (c *cluster) statusWrites() {
	It("is dropped when an object is created or updated as a whole", func() {
		m := fixture.Machine("conformance")
		m.Status.CurrentStatus.Phase = phase
		u := c.createGenerated(machines, m)
		Expect(field(u, "status", "currentStatus", "phase")).To(BeNil())
		u, err := c.of(machines).UpdateStatus(ctx, running(u), update)
		Expect(err).NotTo(HaveOccurred())
		Expect(field(u, "status", "currentStatus", "phase")).To(Equal(phase))
		u, err = c.of(machines).Update(ctx, set(set(u, "Failed", "status", "currentStatus", "phase"), "virtual:///1", "spec", "providerID"), update)
		Expect(err).NotTo(HaveOccurred())
		Expect(field(u, "status", "currentStatus", "phase")).To(Equal(phase))
		Expect(field(u, "spec", "providerID")).To(Equal("virtual:///1"))
	})

	It("is all that a write of a custom resource's status changes", func() {
		u := c.machine()
		wish := set(running(u), "virtual:///1", "spec", "providerID")
		wish.SetLabels(map[string]string{"a": "b"})
		wish.SetFinalizers([]string{"evenkeel.dev/conformance"})
		stored, err := c.of(machines).UpdateStatus(ctx, wish, update)
		Expect(err).NotTo(HaveOccurred())
		Expect(field(stored, "status", "currentStatus", "phase")).To(Equal(phase))
		Expect(field(stored, "spec", "providerID")).To(BeNil())
		Expect(stored.GetLabels()).To(BeEmpty())
		Expect(stored.GetFinalizers()).To(BeEmpty())
	})

	It("is patched and guarded like the rest", func() {
		u := c.machine()
		body := []byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"providerID":"x"},"status":{"currentStatus":{"phase":"Running","lastUpdateTime":"2030-01-01T00:00:00Z"}}}`)
		stored, err := c.of(machines).Patch(ctx, u.GetName(), types.MergePatchType, body, patch, "status")
		Expect(err).NotTo(HaveOccurred())
		Expect(field(stored, "status", "currentStatus", "phase")).To(Equal(phase))
		Expect(field(stored, "spec", "providerID")).To(BeNil())
		again, err := c.of(machines).Patch(ctx, u.GetName(), types.MergePatchType, body, patch, "status")
		Expect(err).NotTo(HaveOccurred())
		Expect(again.GetResourceVersion()).To(Equal(stored.GetResourceVersion()))
		_, err = c.of(machines).UpdateStatus(ctx, running(u), update)
		Expect(err).To(Satisfy(apierrors.IsConflict))
	})
}

// builtInStatus specifies the status of built-in kinds.
func (c *cluster) builtInStatus() {
	It("of a Node is there from birth, and its writes reach metadata too", func() {
		u := c.createGenerated(nodes, fixture.Node("conformance"))
		Expect(field(u, "status", "allocatable", "cpu")).To(Equal("4"))
		wish := set(u, true, "spec", "unschedulable")
		wish.SetAnnotations(map[string]string{"a": "b"})
		Expect(unstructured.SetNestedField(wish.Object, "3", "status", "allocatable", "cpu")).To(Succeed())
		stored, err := c.of(nodes).UpdateStatus(ctx, wish, update)
		Expect(err).NotTo(HaveOccurred())
		Expect(field(stored, "status", "allocatable", "cpu")).To(Equal("3"))
		Expect(field(stored, "spec", "unschedulable")).To(BeNil())
		Expect(stored.GetAnnotations()).To(HaveKeyWithValue("a", "b"))
		stored, err = c.of(nodes).Update(ctx, set(stored, "1", "status", "allocatable", "cpu"), update)
		Expect(err).NotTo(HaveOccurred())
		Expect(field(stored, "status", "allocatable", "cpu")).To(Equal("3"))
	})

	It("of a pod begins as Pending", func() {
		u := c.pod()
		Expect(field(u, "status", "phase")).To(Equal("Pending"))
	})
}

// storedForms specifies how the server normalizes what it stores.
func (c *cluster) storedForms() {
	It("and spec of built-in kinds have the form of their type", func() {
		u := c.createGenerated(nodes, fixture.Node("conformance"))
		wish := set(u, "nonsense", "spec", "unknownField")
		stored, err := c.of(nodes).Update(ctx, wish, update)
		Expect(err).NotTo(HaveOccurred())
		Expect(field(stored, "spec", "unknownField")).To(BeNil())
		Expect(stored.GetResourceVersion()).To(Equal(u.GetResourceVersion()))
		body := []byte(`{"status":{"allocatable":{"cpu":"4000m"}}}`)
		stored, err = c.of(nodes).Patch(ctx, u.GetName(), types.MergePatchType, body, patch, "status")
		Expect(err).NotTo(HaveOccurred())
		Expect(stored.GetResourceVersion()).To(Equal(u.GetResourceVersion()), "4000m is 4")
		body = []byte(`{"spec":{"taints":"none"}}`)
		_, err = c.of(nodes).Patch(ctx, u.GetName(), types.MergePatchType, body, patch)
		Expect(err).To(Or(Satisfy(apierrors.IsBadRequest), Satisfy(apierrors.IsInvalid)))
	})

	It("and spec of custom resources have no nulls", func() {
		u := c.machine()
		body := []byte(`[{"op":"add","path":"/spec/providerID","value":null}]`)
		stored, err := c.of(machines).Patch(ctx, u.GetName(), types.JSONPatchType, body, patch)
		Expect(err).NotTo(HaveOccurred())
		Expect(field(stored, "spec")).NotTo(HaveKey("providerID"))
		Expect(stored.GetResourceVersion()).To(Equal(u.GetResourceVersion()))
	})

	It("of a Secret holds texts as data", func() {
		secrets := c.core.CoreV1().Secrets(fixture.Namespace)
		secret, err := secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"}, StringData: map[string]string{"userData": "hello"},
		}, create)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{})).To(Succeed()) })
		Expect(secret.Data).To(HaveKeyWithValue("userData", []byte("hello")))
		Expect(secret.StringData).To(BeEmpty())
	})
}
