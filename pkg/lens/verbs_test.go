// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"context"
	"errors"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/lens"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// deployment makes a MachineDeployment with three replicas.
func (w lensWorld) deployment() *v1alpha1.MachineDeployment {
	GinkgoHelper()
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: ns}, Spec: v1alpha1.MachineDeploymentSpec{Replicas: 3}}
	return world.Create(w.client.MachineV1alpha1().MachineDeployments(ns), d)
}

// set makes a MachineSet with three replicas.
func (w lensWorld) set() *v1alpha1.MachineSet {
	GinkgoHelper()
	s := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "set", Namespace: ns}, Spec: v1alpha1.MachineSetSpec{Replicas: 3}}
	return world.Create(w.client.MachineV1alpha1().MachineSets(ns), s)
}

func (w lensWorld) scale(d *v1alpha1.MachineDeployment, replicas int32) (*autoscalingv1.Scale, error) {
	return w.client.MachineV1alpha1().MachineDeployments(ns).UpdateScale(w, d.Name, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: d.Name, Namespace: ns, ResourceVersion: d.ResourceVersion}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas},
	}, metav1.UpdateOptions{})
}

// held are the replicas that the store shows.
func (w lensWorld) held() int32 {
	GinkgoHelper()
	d, err := w.informers.MachineDeployments().Lister().MachineDeployments(ns).Get("pool")
	Expect(err).NotTo(HaveOccurred())
	return d.Spec.Replicas
}

var _ = Describe("A scale", func() {
	It("returns when the store shows it (L4.2)", func() {
		inWorld(1, func(w lensWorld) {
			d := w.deployment()
			w.server.Lag("machinedeployments", sim.Constantly(time.Second))
			scale, err := w.scale(d, 5)
			Expect(err).NotTo(HaveOccurred())
			Expect(scale.Spec.Replicas).To(BeEquivalentTo(5))
			Expect(w.held()).To(BeEquivalentTo(5))
		})
	})

	It("of a MachineSet returns when the store shows it (L4.2)", func() {
		inWorld(1, func(w lensWorld) {
			s := w.set()
			w.server.Lag("machinesets", sim.Constantly(time.Second))
			_, err := w.client.MachineV1alpha1().MachineSets(ns).UpdateScale(w, s.Name, &autoscalingv1.Scale{
				ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: ns}, Spec: autoscalingv1.ScaleSpec{Replicas: 5},
			}, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			s, err = w.informers.MachineSets().Lister().MachineSets(ns).Get("set")
			Expect(err).NotTo(HaveOccurred())
			Expect(s.Spec.Replicas).To(BeEquivalentTo(5))
		})
	})

	It("of unknown outcome is reported, and what it has done is awaited (L4.3)", func() {
		inWorld(1, func(w lensWorld) {
			d := w.deployment()
			w.server.Lag("machinedeployments", sim.Constantly(time.Second))
			w.server.AfterWrite(firstly(1, tooLate))
			_, err := w.scale(d, 5)
			Expect(apierrors.IsTimeout(err)).To(BeTrue())
			Expect(w.count("evenkeel_lens_unknown_outcomes_total")).To(BeEquivalentTo(1))
			Expect(w.held()).To(BeEquivalentTo(5))
		})
	})

	It("that is refused is not waited for", func() {
		inWorld(1, func(w lensWorld) {
			d := w.deployment()
			d.ResourceVersion = "1"
			Expect(took(func() {
				scale, err := w.scale(d, 5)
				Expect(apierrors.IsConflict(err)).To(BeTrue())
				Expect(scale).NotTo(BeNil())
			})).To(BeZero())
		})
	})
})

var _ = Describe("A clientset that has stopped", func() {
	It("says so for each verb, with an object to read", func() {
		inWorld(1, func(w lensWorld) {
			made, d := w.create(machine("a")), w.deployment()
			before := len(w.server.Writes())
			w.stop()
			machines := w.machines()
			named := func(m *v1alpha1.Machine, err error) error {
				Expect(m.Name).To(BeEmpty())
				return err
			}
			ctx := context.Background()
			for verb, err := range map[string]error{
				"create":          named(machines.Create(ctx, machine("b"), metav1.CreateOptions{})),
				"create unnamed":  named(machines.Create(ctx, unnamed(), metav1.CreateOptions{})),
				"update":          named(machines.Update(ctx, made, metav1.UpdateOptions{})),
				"update a status": named(machines.UpdateStatus(ctx, made, metav1.UpdateOptions{})),
				"patch":           named(machines.Patch(ctx, "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})),
				"get":             named(machines.Get(ctx, "a", metav1.GetOptions{})),
				"delete":          machines.Delete(ctx, "a", metav1.DeleteOptions{}),
			} {
				Expect(err).To(MatchError(lens.ErrStopped), verb)
			}
			w.Context = ctx
			scale, err := w.scale(d, 5)
			Expect(err).To(MatchError(lens.ErrStopped))
			Expect(scale.Name).To(BeEmpty())
			d, err = w.client.MachineV1alpha1().MachineDeployments(ns).Get(ctx, "pool", metav1.GetOptions{})
			Expect(err).To(MatchError(lens.ErrStopped))
			Expect(d.Name).To(BeEmpty())
			set, err := w.client.MachineV1alpha1().MachineSets(ns).Get(ctx, "pool", metav1.GetOptions{})
			Expect(err).To(MatchError(lens.ErrStopped))
			Expect(set.Name).To(BeEmpty())
			Expect(w.server.Writes()).To(HaveLen(before))
		})
	})

	DescribeTable("ends a list that waits", func(resource string, create func(lensWorld), list func(lensWorld) error) {
		inWorld(1, func(w lensWorld) {
			w.server.Lag(resource, sim.Constantly(time.Hour))
			create(w)
			go func() {
				time.Sleep(time.Minute)
				w.stop()
			}()
			Expect(list(w)).To(MatchError(lens.ErrStopped))
		})
	},
		Entry("of machines", "machines",
			func(w lensWorld) { w.create(machine("a")) },
			func(w lensWorld) error { return second(w.informers.Machines().Lister().List(labels.Everything())) }),
		Entry("of machine sets", "machinesets",
			func(w lensWorld) { w.set() },
			func(w lensWorld) error { return second(w.informers.MachineSets().Lister().List(labels.Everything())) }),
		Entry("of machine deployments", "machinedeployments",
			func(w lensWorld) { w.deployment() },
			func(w lensWorld) error {
				return second(w.informers.MachineDeployments().Lister().List(labels.Everything()))
			}),
	)
})

var _ = Describe("A deletion", func() {
	It("that is a dry run deletes nothing, and is not waited for", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a"))
			w.server.Lag("machines", sim.Constantly(lag))
			time.AfterFunc(time.Hour, w.stop)
			Expect(took(func() {
				Expect(w.machines().Delete(w, "a", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})).To(Succeed())
				Expect(w.machines().Delete(w, "none", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})).To(Satisfy(apierrors.IsNotFound))
			})).To(BeZero())
			Expect(w.stored()).To(HaveLen(1))
		})
	})

	It("of another client's machine, which the store has yet to show, is awaited", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(time.Second))
			world.Create(w.others.Machines(ns), machine("theirs", finalizer))
			Expect(w.machines().Delete(w, "theirs", metav1.DeleteOptions{})).To(Succeed())
			m, err := w.informers.Machines().Lister().Machines(ns).Get("theirs")
			Expect(err).NotTo(HaveOccurred())
			Expect(m.DeletionTimestamp).NotTo(BeNil())
		})
	})

	It("is repeated five times where the server goes on failing", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a", finalizer))
			requests := 0
			w.server.OnWrite(func(sim.Write) error { requests++; return serverError })
			Expect(took(func() {
				Expect(w.machines().Delete(w, "a", metav1.DeleteOptions{})).To(Satisfy(apierrors.IsInternalError))
			})).To(Equal(pauses(4)))
			Expect(requests).To(Equal(5))
			Expect(w.count("evenkeel_lens_unknown_outcomes_total")).To(BeEquivalentTo(5))
		})
	})

	It("ends with its context, and returns what the server said", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a", finalizer))
			w.server.OnWrite(firstly(1000, serverError))
			ctx, cancel := context.WithTimeout(w, 10*time.Millisecond)
			defer cancel()
			Expect(w.machines().Delete(ctx, "a", metav1.DeleteOptions{})).To(Satisfy(apierrors.IsInternalError))
		})
	})
})

var _ = Describe("A creation", func() {
	It("ends with its context, and returns what the server said", func() {
		inWorld(1, func(w lensWorld) {
			w.server.OnWrite(firstly(1000, serverError))
			ctx, cancel := context.WithTimeout(w, 10*time.Millisecond)
			defer cancel()
			made, err := w.machines().Create(ctx, unnamed(), metav1.CreateOptions{})
			Expect(err).To(Satisfy(apierrors.IsInternalError))
			Expect(made).NotTo(BeNil())
		})
	})

	It("of a machine without any name is refused by the server, once", func() {
		inWorld(1, func(w lensWorld) {
			Expect(second(w.machines().Create(w, machine(""), metav1.CreateOptions{}))).To(HaveOccurred())
			Expect(w.stored()).To(BeEmpty())
		})
	})

	It("that is answered is one request, and returns what the server says", func() {
		inWorld(1, func(w lensWorld) {
			requested := w.requests()
			made := w.create(unnamed())
			Expect(made.UID).NotTo(BeEmpty())
			Expect(*requested).To(Equal([]string{"create"}))
			Expect(w.count("evenkeel_lens_unknown_outcomes_total")).To(BeZero())
		})
	})

	It("by a name is that name's, whatever generateName says", func() {
		inWorld(1, func(w lensWorld) {
			m := machine("a")
			m.GenerateName = "pool-"
			made, err := w.machines().Create(w, m, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(made.Name).To(Equal("a"))
		})
	})

	DescribeTable("of unknown outcome is not settled by a machine without an owner", func(change func(*v1alpha1.Machine)) {
		inWorld(1, func(w lensWorld) {
			m := unnamed()
			change(m)
			w.server.AfterWrite(firstly(1, errors.New("connection reset")))
			_, err := w.machines().Create(w, m, metav1.CreateOptions{})
			Expect(err).To(HaveOccurred(), "its owner is unknown")
			Expect(w.stored()).To(HaveLen(1))
		})
	},
		Entry("that has none", func(m *v1alpha1.Machine) { m.OwnerReferences = nil }),
		Entry("that none controls", func(m *v1alpha1.Machine) { m.OwnerReferences[0].Controller = nil }),
	)
})

func second[T any](_ T, err error) error { return err }
