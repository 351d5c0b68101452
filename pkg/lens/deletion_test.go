// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("A deletion that is limited to a version, and whose outcome is unknown (L4.3)", func() {
	It("is no error if it is still under way, though the next attempt conflicts with its effect", func() {
		inWorld(1, func(w lensWorld) {
			made := w.create(machine("a", finalizer))
			w.server.Lag("machines", sim.Constantly(lag))
			w.server.OnWrite(firstly(1, noAnswer))
			go func() { // after it was looked up in vain, before it is repeated
				time.Sleep(10 * time.Millisecond)
				_ = w.others.Machines(ns).Delete(w, "a", metav1.DeleteOptions{})
			}()
			limited := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &made.ResourceVersion}}
			Expect(w.machines().Delete(w, "a", limited)).To(Succeed())
			left, err := w.informers.Machines().Lister().List(labels.Everything())
			Expect(err).NotTo(HaveOccurred())
			Expect(left).To(ConsistOf(HaveField("DeletionTimestamp", Not(BeNil()))))
		})
	})

	It("conflicts at once if another client has changed the object meanwhile", func() {
		inWorld(1, func(w lensWorld) {
			made := w.create(machine("a"))
			requests := 0
			w.server.OnWrite(func(write sim.Write) error {
				if write.Verb != "delete" {
					return nil
				}
				requests++
				if requests > 1 {
					return nil
				}
				go func() {
					time.Sleep(10 * time.Millisecond)
					_, _ = w.others.Machines(ns).Patch(w, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"yes"}}}`), metav1.PatchOptions{})
				}()
				return noAnswer
			})
			limited := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &made.ResourceVersion}}
			Expect(w.machines().Delete(w, "a", limited)).To(Satisfy(apierrors.IsConflict))
			Expect(requests).To(Equal(2))
			Expect(w.count("evenkeel_lens_unknown_outcomes_total")).To(BeEquivalentTo(1), "the conflict is none")
		})
	})
})
