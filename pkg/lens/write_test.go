// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"context"
	"errors"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/lens"
	"github.com/evenkeel/evenkeel/test/sim"
)

var dryRun = []string{metav1.DryRunAll}

var _ = Describe("A write (L4.2)", func() {
	It("returns when the store shows it", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(300*time.Millisecond))
			Expect(took(func() { w.create(machine("a")) })).To(Equal(300 * time.Millisecond))
			_, err := w.informers.Machines().Lister().Machines(ns).Get("a")
			Expect(err).NotTo(HaveOccurred())
			Expect(w.count("evenkeel_lens_write_wait_seconds")).To(BeEquivalentTo(1))
			Expect(w.count("evenkeel_lens_write_wait_timeouts_total")).To(BeZero())
		})
	})

	DescribeTable("that deletes returns when the store shows that", func(finalizers ...string) {
		inWorld(1, func(w lensWorld) {
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
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(lag))
			Expect(took(func() { w.create(machine("a")) })).To(Equal(lens.DefaultPatience))
			Expect(took(func() { w.create(machine("b")) })).To(BeZero())
			Expect(w.count("evenkeel_lens_write_wait_timeouts_total")).To(BeEquivalentTo(1))
			Expect(w.listed()).To(ConsistOf("a", "b"))
			Expect(w.count("evenkeel_lens_decision_wait_seconds")).To(BeEquivalentTo(1))
			Expect(took(func() { w.create(machine("c")) })).To(Equal(lens.DefaultPatience))
		})
	})

	It("that changes nothing waits for nothing, and does not count as one that waited", func() {
		inWorld(1, func(w lensWorld) {
			made := w.create(machine("a"))
			waited := w.count("evenkeel_lens_write_wait_seconds")
			w.server.Lag("machines", sim.Constantly(lag))
			Expect(took(func() {
				_, err := w.machines().Update(w, made, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(w.listed()).To(ConsistOf("a"))
			})).To(BeZero())
			Expect(w.count("evenkeel_lens_write_wait_seconds")).To(Equal(waited))
		})
	})

	DescribeTable("that is a dry run changes nothing", func(write func(lensWorld, *v1alpha1.Machine) error) {
		inWorld(1, func(w lensWorld) {
			made := w.create(machine("a"))
			changed := made.DeepCopy()
			changed.Spec.ProviderID, changed.Status.CurrentStatus.Phase = "x", v1alpha1.MachineFailed
			Expect(write(w, changed)).To(Succeed())
			Expect(w.stored()).To(HaveExactElements(HaveField("ResourceVersion", made.ResourceVersion)))
		})
	},
		Entry("of a create", func(w lensWorld, _ *v1alpha1.Machine) error {
			return second(w.machines().Create(w, machine("b"), metav1.CreateOptions{DryRun: dryRun}))
		}),
		Entry("of a create by a prefix", func(w lensWorld, _ *v1alpha1.Machine) error {
			return second(w.machines().Create(w, unnamed(), metav1.CreateOptions{DryRun: dryRun}))
		}),
		Entry("of an update", func(w lensWorld, m *v1alpha1.Machine) error {
			return second(w.machines().Update(w, m, metav1.UpdateOptions{DryRun: dryRun}))
		}),
		Entry("of a status update", func(w lensWorld, m *v1alpha1.Machine) error {
			return second(w.machines().UpdateStatus(w, m, metav1.UpdateOptions{DryRun: dryRun}))
		}),
		Entry("of a patch", func(w lensWorld, m *v1alpha1.Machine) error {
			return second(w.machines().Patch(w, m.Name, types.MergePatchType, []byte(`{"spec":{"providerID":"x"}}`), metav1.PatchOptions{DryRun: dryRun}))
		}),
		Entry("of a delete", func(w lensWorld, m *v1alpha1.Machine) error {
			return w.machines().Delete(w, m.Name, metav1.DeleteOptions{DryRun: dryRun})
		}),
	)

	It("that patches a subresource changes that", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a"))
			patch := []byte(`{"spec":{"providerID":"x"},"status":{"currentStatus":{"phase":"Running"}}}`)
			after, err := w.machines().Patch(w, "a", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			Expect(after.Status.CurrentStatus.Phase).To(Equal(v1alpha1.MachineRunning))
			Expect(after.Spec.ProviderID).To(BeEmpty())
		})
	})

	It("that deletes keeps its preconditions", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a"))
			another := metav1.NewPreconditionDeleteOptions("another")
			err := w.machines().Delete(w, "a", *another)
			Expect(err).To(Satisfy(apierrors.IsConflict))
			Expect(w.listed()).To(ConsistOf("a"))
		})
	})

	It("ends with the context of its caller", func() {
		inWorld(1, func(w lensWorld) {
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
		inWorld(1, func(w lensWorld) {
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
		inWorld(1, func(w lensWorld) {
			w.create(machine("a"))
			err := w.machines().DeleteCollection(w, metav1.DeleteOptions{}, metav1.ListOptions{})
			Expect(apierrors.IsMethodNotSupported(err)).To(BeTrue())
			var refusal apierrors.APIStatus
			Expect(errors.As(err, &refusal)).To(BeTrue())
			Expect(*refusal.Status().Details).To(Equal(metav1.StatusDetails{Group: machineResource.Group, Kind: machineResource.Resource}))
			Expect(w.stored()).To(HaveLen(1))
		})
	})
})
