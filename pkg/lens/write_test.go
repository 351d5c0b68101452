// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/pkg/lens"
)

var _ = Describe("A write (L4.2)", func() {
	It("returns when the store shows it", func() {
		inWorld(1, func(w world) {
			w.server.Lag("machines", sim.Constantly(300*time.Millisecond))
			Expect(took(func() { w.create(machine("a")) })).To(Equal(300 * time.Millisecond))
			_, err := w.informers.Machines().Lister().Machines(ns).Get("a")
			Expect(err).NotTo(HaveOccurred())
			Expect(w.count("evenkeel_lens_write_wait_seconds")).To(BeEquivalentTo(1))
			Expect(w.count("evenkeel_lens_write_wait_timeouts_total")).To(BeZero())
		})
	})

	DescribeTable("that deletes returns when the store shows that", func(finalizers ...string) {
		inWorld(1, func(w world) {
			w.create(machine("a", finalizers...))
			w.server.Lag("machines", sim.Constantly(300*time.Millisecond))
			Expect(took(func() { Expect(w.machines().Delete(w, "a", metav1.DeleteOptions{})).To(Succeed()) })).To(Equal(300 * time.Millisecond))
			Expect(w.count("evenkeel_lens_write_wait_timeouts_total")).To(BeZero())
		})
	},
		Entry("the machine leaves", finalizer),
		Entry("it is gone"),
	)

	It("is patient once, and then not until the store has caught up", func() {
		inWorld(1, func(w world) {
			w.server.Lag("machines", sim.Constantly(lag))
			Expect(took(func() { w.create(machine("a")) })).To(Equal(lens.DefaultPatience))
			Expect(took(func() { w.create(machine("b")) })).To(BeZero())
			Expect(w.count("evenkeel_lens_write_wait_timeouts_total")).To(BeEquivalentTo(1))
			Expect(w.listed()).To(ConsistOf("a", "b"))
			Expect(w.count("evenkeel_lens_decision_wait_seconds")).To(BeEquivalentTo(1))
			Expect(took(func() { w.create(machine("c")) })).To(Equal(lens.DefaultPatience))
		})
	})

	It("that changes nothing waits for nothing", func() {
		inWorld(1, func(w world) {
			made := w.create(machine("a"))
			w.server.Lag("machines", sim.Constantly(lag))
			Expect(took(func() {
				_, err := w.machines().Update(w, made, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(w.listed()).To(ConsistOf("a"))
			})).To(BeZero())
		})
	})

	It("ends with the context of its caller", func() {
		inWorld(1, func(w world) {
			w.server.Lag("machines", sim.Constantly(lag))
			ctx, cancel := context.WithTimeout(w, time.Second)
			defer cancel()
			Expect(took(func() {
				_, err := w.machines().Create(ctx, machine("a"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			})).To(Equal(time.Second))
		})
	})
})

var _ = Describe("What does not wait (L4.4, L4.5)", func() {
	It("is a lookup by name and a list of one namespace", func() {
		inWorld(1, func(w world) {
			w.create(machine("a"))
			w.server.Lag("machines", sim.Constantly(lag))
			w.create(machine("b"))
			Expect(took(func() {
				_, err := w.informers.Machines().Lister().Machines(ns).Get("a")
				Expect(err).NotTo(HaveOccurred())
				Expect(w.informers.Machines().Lister().Machines(ns).List(labels.Everything())).To(HaveLen(1))
			})).To(BeZero())
		})
	})

	It("is not the deletion of a collection: that is refused", func() {
		inWorld(1, func(w world) {
			w.create(machine("a"))
			err := w.machines().DeleteCollection(w, metav1.DeleteOptions{}, metav1.ListOptions{})
			Expect(apierrors.IsMethodNotSupported(err)).To(BeTrue())
			Expect(w.stored()).To(HaveLen(1))
		})
	})
})
