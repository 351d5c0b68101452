// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/test/fixture"
)

func (c *cluster) pages() {
	labelled := func(name string) string {
		GinkgoHelper()
		m := fixture.Machine("conformance")
		m.Labels = map[string]string{"conformance": name}
		return c.createGenerated(machines, m).GetName()
	}

	It("go on where the one before ended, with the state it began with", func() {
		of := metav1.ListOptions{LabelSelector: "conformance=pages", Limit: 2}
		all := []string{labelled("pages"), labelled("pages"), labelled("pages")}
		first, err := c.of(machines).List(ctx, of)
		Expect(err).NotTo(HaveOccurred())
		Expect(first.Items).To(HaveLen(2))
		Expect(first.GetContinue()).NotTo(BeEmpty())
		late := labelled("pages")
		of.Continue = first.GetContinue()
		second, err := c.of(machines).List(ctx, of)
		Expect(err).NotTo(HaveOccurred())
		Expect(second.Items).To(HaveLen(1))
		Expect(second.GetContinue()).To(BeEmpty())
		Expect(second.GetResourceVersion()).To(Equal(first.GetResourceVersion()))
		Expect([]string{first.Items[0].GetName(), first.Items[1].GetName(), second.Items[0].GetName()}).To(ConsistOf(all))
		Expect(all).NotTo(ContainElement(late))
	})

	It("of garbage are refused", func() {
		_, err := c.of(machines).List(ctx, metav1.ListOptions{Limit: 2, Continue: "garbage"})
		Expect(err).To(Satisfy(apierrors.IsBadRequest))
	})

	It("can be had of a state that was, exactly", func() {
		u := c.machine()
		_, err := c.of(machines).Update(ctx, set(u, "b", "metadata", "labels", "a"), update)
		Expect(err).NotTo(HaveOccurred())
		list, err := c.of(machines).List(ctx, metav1.ListOptions{
			FieldSelector: "metadata.name=" + u.GetName(), ResourceVersion: u.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(list.GetResourceVersion()).To(Equal(u.GetResourceVersion()))
		Expect(list.Items[0].GetLabels()).NotTo(HaveKey("a"))
	})

	It("of a state that is yet to come are refused, for now", func() {
		_, err := c.of(machines).List(ctx, metav1.ListOptions{ResourceVersion: "9000000000000", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		Expect(err).To(Satisfy(apierrors.IsTimeout))
		Expect(apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)).To(BeTrue())
	})
}
