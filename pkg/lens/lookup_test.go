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
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/evenkeel/evenkeel/pkg/lens"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

const unanswered = "The outcome of a write is unknown and cannot be looked up; asking on"

var _ = Describe("A look-up of what a write has done (L4.3)", func() {
	DescribeTable("is logged once, when it has failed five times",
		func(answers time.Duration, want []string) {
			inWorld(1, func(w lensWorld) {
				w.server.AfterWrite(firstly(1, noAnswer))
				w.server.Trouble("machines", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "ours")
				time.AfterFunc(answers, func() { w.server.Trouble("machines", sim.Trouble{}, "ours") })
				_, err := w.machines().Create(w, unnamed(), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(w.logged()).To(ConsistOf(want))
			})
		},
		Entry("and goes on", pauses(4)+time.Millisecond, []string{unanswered}),
		Entry("and goes on for an hour", time.Hour, []string{unanswered}),
		Entry("and not when the fifth one succeeds", pauses(4)-time.Millisecond, []string{}),
	)

	It("is logged with the object's kind and name", func() {
		inWorld(1, func(w lensWorld) {
			w.server.AfterWrite(firstly(1, noAnswer))
			w.server.Trouble("machines", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "ours")
			time.AfterFunc(time.Minute, func() { w.server.Trouble("machines", sim.Trouble{}, "ours") })
			made := w.create(unnamed())
			Expect(w.details()).To(Equal(map[string]string{"resource": "machines", "object": ns + "/" + made.Name}))
		})
	})

	It("ends with the clientset; the deletion then returns what the server said", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a", finalizer))
			w.server.AfterWrite(firstly(1, serverError))
			w.server.Trouble("machines", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Throttled}}, "ours")
			time.AfterFunc(time.Minute, w.stop)
			Expect(took(func() {
				Expect(w.machines().Delete(context.Background(), "a", metav1.DeleteOptions{})).To(Satisfy(apierrors.IsInternalError))
			})).To(Equal(time.Minute))
		})
	})

	It("is not made for a creation that is superfluous, which is refused at once", func() {
		inWorld(1, func(w lensWorld) {
			requests := w.requests()
			w.server.OnWrite(firstly(1, apierrors.NewConflict(machineResource, "", errors.New("there are enough"))))
			_, err := w.machines().Create(w, unnamed(), metav1.CreateOptions{})
			Expect(err).To(Satisfy(apierrors.IsConflict))
			Expect(*requests).To(Equal([]string{"create"}))
			Expect(w.count("evenkeel_lens_unknown_outcomes_total")).To(BeZero())
		})
	})

	It("is not made for a machine without any name: what the server said is returned at once", func() {
		inWorld(1, func(w lensWorld) {
			time.AfterFunc(time.Minute, w.stop)
			w.server.OnWrite(firstly(1, serverError))
			Expect(took(func() {
				_, err := w.machines().Create(w, machine(""), metav1.CreateOptions{})
				Expect(err).To(Satisfy(apierrors.IsInternalError))
			})).To(BeZero())
		})
	})

	It("is not made for a deletion without a name, which fails as it does with a plain clientset", func() {
		inWorld(1, func(w lensWorld) {
			ctx, cancel := context.WithTimeout(w, time.Minute)
			defer cancel()
			want := w.plain().MachineV1alpha1().Machines(ns).Delete(ctx, "", metav1.DeleteOptions{})
			Expect(want).To(HaveOccurred())
			Expect(took(func() { Expect(w.machines().Delete(ctx, "", metav1.DeleteOptions{})).To(MatchError(want.Error())) })).To(BeZero())
		})
	})

	DescribeTable("takes no machine for one that was created where only one of the two has an owner",
		func(ours, theirs []metav1.OwnerReference) {
			inWorld(1, func(w lensWorld) {
				m := unnamed()
				m.OwnerReferences = ours
				_, err := overtaken(w, m, func(m *v1alpha1.Machine) { m.OwnerReferences = theirs })
				Expect(apierrors.IsAlreadyExists(err)).To(BeTrue())
				Expect(w.stored()).To(HaveLen(1))
			})
		},
		Entry("theirs", nil, unnamed().OwnerReferences),
		Entry("ours", unnamed().OwnerReferences, nil),
	)
})

var _ = Describe("A machine that is created by a prefix", func() {
	It("never gets the name of one that is there", func() {
		inWorld(1, func(w lensWorld) {
			rand.Seed(7)
			taken := "pool-" + rand.String(5)
			w.create(machine(taken))
			rand.Seed(7) // the same name is drawn again
			made := w.create(unnamed())
			Expect(made.Name).NotTo(Equal(taken))
			Expect(w.listed()).To(ConsistOf(taken, made.Name))
		})
	})
})

var _ = Describe("A deletion while the watch is late", func() {
	It("of a machine that the store shows does not wait for what else was written", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a", finalizer))
			w.server.Lag("machines", sim.Constantly(lag))
			w.create(machine("b"))
			Expect(took(func() { Expect(w.machines().Delete(w, "a", metav1.DeleteOptions{})).To(Succeed()) })).To(BeZero())
		})
	})

	It("of a machine that the store has never shown is not requested any more once the clientset has stopped", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(time.Hour))
			w.create(machine("a"))
			world.Create(w.others.Machines(ns), machine("theirs"))
			time.AfterFunc(time.Minute, w.stop)
			Expect(w.machines().Delete(context.Background(), "theirs", metav1.DeleteOptions{})).To(MatchError(lens.ErrStopped))
			Expect(w.stored()).To(HaveLen(2))
		})
	})

	DescribeTable("returns when the store shows it, whatever the kind",
		func(resource string, create func(lensWorld), remove func(lensWorld) error, left func(lensWorld) int) {
			inWorld(1, func(w lensWorld) {
				create(w)
				w.server.Lag(resource, sim.Constantly(time.Second))
				Expect(took(func() { Expect(remove(w)).To(Succeed()) })).To(Equal(time.Second))
				Expect(left(w)).To(BeZero())
			})
		},
		Entry("of a machine set", "machinesets",
			func(w lensWorld) { w.set() },
			func(w lensWorld) error {
				return w.client.MachineV1alpha1().MachineSets(ns).Delete(w, "set", metav1.DeleteOptions{})
			},
			func(w lensWorld) int { return len(w.informers.MachineSets().Informer().GetStore().List()) }),
		Entry("of a machine deployment", "machinedeployments",
			func(w lensWorld) { w.deployment() },
			func(w lensWorld) error {
				return w.client.MachineV1alpha1().MachineDeployments(ns).Delete(w, "pool", metav1.DeleteOptions{})
			},
			func(w lensWorld) int { return len(w.informers.MachineDeployments().Informer().GetStore().List()) }),
	)
})
