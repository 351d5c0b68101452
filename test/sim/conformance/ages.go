// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/fixture"
)

// Keeper is a server together with control over its storage.
type Keeper struct {
	Config *rest.Config
	// Forget returns when the server has forgotten the history of all kinds until now.
	Forget func()
	// Backup takes a backup. The function that it returns restores it.
	Backup func() (restore func())
}

// Ages registers the specs about forgotten history and about backups. The function is called before
// each of them.
func Ages(keeper func() Keeper) {
	c, k := &cluster{}, Keeper{}
	BeforeEach(func() {
		k = keeper()
		*c = *connect(k.Config)
	})
	Describe("Forgotten history", func() { c.forgotten(func() { k.Forget() }) })
	Describe("A restored backup", func() { c.restored(func() func() { return k.Backup() }) })
}

// gone reports whether an answer, or an event of a watch, means that history is forgotten.
func gone(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == 410 && status.Status().Reason == metav1.StatusReasonExpired
}

// labelled creates machines that only one spec selects.
func (c *cluster) labelled(n int) (all []*unstructured.Unstructured, of metav1.ListOptions) {
	GinkgoHelper()
	name := c.unused()
	for range n {
		m := fixture.Machine("conformance")
		m.Labels = map[string]string{"conformance": name}
		all = append(all, c.createGenerated(machines, m))
	}
	return all, metav1.ListOptions{LabelSelector: "conformance=" + name}
}

// forgotten specifies what happens to versions that the server does not remember.
func (c *cluster) forgotten(forget func()) {
	c.forgottenLists(forget)

	It("is no beginning for a watch", func() {
		u := c.machine()
		_, err := c.of(machines).Update(ctx, set(u, "b", "metadata", "labels", "a"), update)
		Expect(err).NotTo(HaveOccurred())
		forget()
		w, err := c.of(machines).Watch(ctx, only(u))
		if err == nil {
			defer w.Stop()
			var e watch.Event
			Eventually(w.ResultChan(), patience).Should(Receive(&e))
			Expect(e.Type).To(Equal(watch.Error))
			err = apierrors.FromObject(e.Object)
		}
		Expect(err).To(Satisfy(gone))
	})

	It("does not concern lists of the present, nor watches from there", func() {
		u := c.machine()
		forget()
		list, err := c.of(machines).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + u.GetName()})
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).To(HaveLen(1))
		w := c.watch(machines, metav1.ListOptions{FieldSelector: "metadata.name=" + u.GetName(), ResourceVersion: list.GetResourceVersion()})
		two, err := c.of(machines).Update(ctx, set(u, "b", "metadata", "labels", "a"), update)
		Expect(err).NotTo(HaveOccurred())
		w.expect(watch.Modified, two)
	})
}

// forgottenLists specifies the same for lists in pages, and for lists of an exact version.
func (c *cluster) forgottenLists(forget func()) {
	It("ends lists that go on, and those of an exact version", func() {
		all, of := c.labelled(3)
		of.Limit = 2
		first, err := c.of(machines).List(ctx, of)
		Expect(err).NotTo(HaveOccurred())
		_, err = c.of(machines).Update(ctx, set(all[2], "b", "metadata", "labels", "a"), update)
		Expect(err).NotTo(HaveOccurred())
		forget()
		next := of
		next.Continue = first.GetContinue()
		_, err = c.of(machines).List(ctx, next)
		Expect(err).To(Satisfy(gone))
		of.Limit, of.ResourceVersion, of.ResourceVersionMatch = 0, first.GetResourceVersion(), metav1.ResourceVersionMatchExact
		_, err = c.of(machines).List(ctx, of)
		Expect(err).To(Satisfy(gone))
	})

	It("lets a list continue with the present state, by a token in the refusal", func() {
		all, of := c.labelled(3)
		of.Limit = 2
		first, err := c.of(machines).List(ctx, of)
		Expect(err).NotTo(HaveOccurred())
		late := c.createGenerated(machines, fixture.Machine("conformance-zzz"))
		_, err = c.of(machines).Update(ctx, set(late, of.LabelSelector[len("conformance="):], "metadata", "labels", "conformance"), update)
		Expect(err).NotTo(HaveOccurred())
		forget()
		of.Continue = first.GetContinue()
		_, err = c.of(machines).List(ctx, of)
		var status apierrors.APIStatus
		Expect(errors.As(err, &status)).To(BeTrue(), "%v", err)
		of.Continue = status.Status().Continue
		Expect(of.Continue).NotTo(BeEmpty())
		rest, err := c.of(machines).List(ctx, of)
		Expect(err).NotTo(HaveOccurred())
		Expect(rest.Items).To(HaveLen(2))
		Expect(rest.Items[1].GetName()).To(Equal(late.GetName()), "which the first page's state did not have")
		Expect(all).To(HaveLen(3))
	})
}

// restored specifies what clients see after a backup was restored.
func (c *cluster) restored(backup func() (restore func())) {
	It("has the objects of its time, which are the same objects, and repeats generations", func() {
		u := c.createGenerated(deployments, fixture.MachineDeployment("conformance", 1))
		restore := backup()
		later := c.machine()
		changed, err := c.of(deployments).Update(ctx, set(u, int64(2), "spec", "replicas"), update)
		Expect(err).NotTo(HaveOccurred())
		restore()
		_, err = c.of(machines).Get(ctx, later.GetName(), get)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
		is, err := c.of(deployments).Get(ctx, u.GetName(), get)
		Expect(err).NotTo(HaveOccurred())
		Expect(is).To(Equal(u))
		is, err = c.of(deployments).Update(ctx, set(is, int64(5), "spec", "replicas"), update)
		Expect(err).NotTo(HaveOccurred())
		Expect(is.GetGeneration()).To(Equal(changed.GetGeneration()))
		Expect(is.GetUID()).To(Equal(changed.GetUID()))
	})

	It("takes versions back", func() {
		one := c.machine()
		restore := backup()
		later := one
		for i := range 20 {
			var err error
			later, err = c.of(machines).Update(ctx, set(later, string(rune('a'+i)), "metadata", "labels", "step"), update)
			Expect(err).NotTo(HaveOccurred())
		}
		restore()
		is, err := c.of(machines).Get(ctx, one.GetName(), get)
		Expect(err).NotTo(HaveOccurred())
		Expect(is.GetResourceVersion()).To(Equal(one.GetResourceVersion()))
		Expect(version(is)).To(BeNumerically("<", version(later)))
	})
}
