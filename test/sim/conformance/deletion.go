// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/test/fixture"
)

const finalizer = "evenkeel.dev/conformance"

// makeDeleting creates and deletes a machine that its finalizer keeps.
func (c *cluster) makeDeleting() *unstructured.Unstructured {
	GinkgoHelper()
	m := fixture.Machine("conformance")
	m.Finalizers = []string{finalizer}
	u := c.createGenerated(machines, m)
	background := metav1.DeletePropagationBackground
	Expect(c.of(machines).Delete(ctx, u.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})).To(Succeed())
	u, err := c.of(machines).Get(ctx, u.GetName(), get)
	Expect(err).NotTo(HaveOccurred())
	return u
}

func (c *cluster) deletion() {
	c.finalizers()
	c.deletionOptions()
}

// finalizers specifies deletion of objects with and without finalizers.
func (c *cluster) finalizers() {
	It("removes an object that nothing keeps", func() {
		u := c.machine()
		Expect(c.of(machines).Delete(ctx, u.GetName(), metav1.DeleteOptions{})).To(Succeed())
		_, err := c.of(machines).Get(ctx, u.GetName(), get)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
	})

	It("marks an object that has finalizers, once", func() {
		u := c.makeDeleting()
		Expect(u.GetDeletionTimestamp()).NotTo(BeNil())
		Expect(field(u, "metadata", "deletionGracePeriodSeconds")).To(BeEquivalentTo(0))
		Expect(c.of(machines).Delete(ctx, u.GetName(), metav1.DeleteOptions{})).To(Succeed())
		again, err := c.of(machines).Get(ctx, u.GetName(), get)
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(Equal(u))
	})

	It("cannot be taken back", func() {
		u := c.makeDeleting()
		since := u.GetDeletionTimestamp()
		u.SetDeletionTimestamp(nil)
		u.SetLabels(map[string]string{"a": "b"})
		u, err := c.of(machines).Update(ctx, u, update)
		Expect(err).NotTo(HaveOccurred())
		Expect(u.GetDeletionTimestamp()).To(Equal(since))
	})

	It("lets no finalizer be added, and continues when the last one is removed", func() {
		u := c.makeDeleting()
		more := u.DeepCopy()
		more.SetFinalizers([]string{finalizer, "evenkeel.dev/another"})
		_, err := c.of(machines).Update(ctx, more, update)
		Expect(err).To(Satisfy(apierrors.IsInvalid))
		u.SetFinalizers(nil)
		last, err := c.of(machines).Update(ctx, u, update)
		Expect(err).NotTo(HaveOccurred())
		Expect(last.GetName()).To(Equal(u.GetName()))
		_, err = c.of(machines).Get(ctx, u.GetName(), get)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
	})

	It("also continues when a patch removes the last finalizer", func() {
		u := c.makeDeleting()
		_, err := c.of(machines).Patch(ctx, u.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), patch)
		Expect(err).NotTo(HaveOccurred())
		_, err = c.of(machines).Get(ctx, u.GetName(), get)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
	})
}

// deletionOptions specifies preconditions, collections and propagation policies.
func (c *cluster) deletionOptions() {
	It("happens only under its preconditions", func() {
		u := c.machine()
		uid, rv := u.GetUID(), u.GetResourceVersion()
		otherUID, otherRV := types.UID("00000000-0000-4000-8000-000000000000"), rv+"0"
		for _, p := range []metav1.Preconditions{{UID: &otherUID}, {ResourceVersion: &otherRV}, {UID: &uid, ResourceVersion: &otherRV}} {
			err := c.of(machines).Delete(ctx, u.GetName(), metav1.DeleteOptions{Preconditions: &p})
			Expect(err).To(Satisfy(apierrors.IsConflict))
		}
		right := metav1.Preconditions{UID: &uid, ResourceVersion: &rv}
		Expect(c.of(machines).Delete(ctx, u.GetName(), metav1.DeleteOptions{Preconditions: &right})).To(Succeed())
	})

	It("of a collection takes what is selected", func() {
		kept, gone := c.machine(), c.machine()
		gone.SetLabels(map[string]string{"evenkeel.dev/conformance": gone.GetName()})
		_, err := c.of(machines).Update(ctx, gone, update)
		Expect(err).NotTo(HaveOccurred())
		selected := metav1.ListOptions{LabelSelector: "evenkeel.dev/conformance=" + gone.GetName()}
		Expect(c.of(machines).DeleteCollection(ctx, metav1.DeleteOptions{}, selected)).To(Succeed())
		_, err = c.of(machines).Get(ctx, kept.GetName(), get)
		Expect(err).NotTo(HaveOccurred())
		_, err = c.of(machines).Get(ctx, gone.GetName(), get)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
	})

	It("with the policies Orphan and Foreground waits for the garbage collector, which a finalizer tells", func() {
		for policy, finalizer := range map[metav1.DeletionPropagation]string{
			metav1.DeletePropagationOrphan: metav1.FinalizerOrphanDependents, metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
		} {
			u := c.machine()
			Expect(c.of(machines).Delete(ctx, u.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy})).To(Succeed())
			left, err := c.of(machines).Get(ctx, u.GetName(), get)
			Expect(err).NotTo(HaveOccurred())
			Expect(left.GetDeletionTimestamp()).NotTo(BeNil())
			Expect(left.GetFinalizers()).To(Equal([]string{finalizer}))
			background := metav1.DeletePropagationBackground
			Expect(c.of(machines).Delete(ctx, u.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})).To(Succeed())
			_, err = c.of(machines).Get(ctx, u.GetName(), get)
			Expect(err).To(Satisfy(apierrors.IsNotFound), "who asks again may change his mind")
		}
	})
}
