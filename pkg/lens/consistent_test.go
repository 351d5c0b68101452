// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

const (
	finalizer = "machine.sapcloud.io/machine-controller-manager"
	lag       = 5 * time.Second
)

// took is how much virtual time a call takes.
func took(call func()) time.Duration {
	begun := time.Now()
	call()
	return time.Since(begun)
}

// listed are the names a controller gets when it lists everything.
func (w lensWorld) listed() []string {
	list, err := w.informers.Machines().Lister().List(labels.Everything())
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = m.Name
		if m.DeletionTimestamp != nil {
			names[i] += " leaving"
		}
	}
	return names
}

func (w lensWorld) create(m *v1alpha1.Machine) *v1alpha1.Machine {
	made, err := w.machines().Create(w, m, metav1.CreateOptions{})
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return made
}

var _ = Describe("A list (L4.1)", func() {
	It("shows what was created, however late the watch", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(lag))
			Expect(took(func() {
				w.create(machine("a"))
				Expect(w.listed()).To(ConsistOf("a"))
			})).To(Equal(lag))
		})
	})

	It("shows machines as terminating from when their deletion is requested, and the store as it is (L4.7)", func() {
		inWorld(1, func(w lensWorld) {
			for _, name := range []string{"a", "b"} {
				made := w.create(machine(name, "example.org/machine"))
				made.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
				_, err := w.machines().UpdateStatus(w, made, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			Expect(w.machines().Delete(w, "a", metav1.DeleteOptions{})).To(Succeed())
			phases := map[string]v1alpha1.MachinePhase{}
			list, err := w.informers.Machines().Lister().List(labels.Everything())
			Expect(err).NotTo(HaveOccurred())
			for _, m := range list {
				phases[m.Name] = m.Status.CurrentStatus.Phase
			}
			Expect(phases).To(Equal(map[string]v1alpha1.MachinePhase{"a": v1alpha1.MachineTerminating, "b": v1alpha1.MachineRunning}))
			stored, err := w.informers.Machines().Lister().Machines(ns).Get("a")
			Expect(err).NotTo(HaveOccurred())
			Expect(stored.Status.CurrentStatus.Phase).To(Equal(v1alpha1.MachineRunning))
		})
	})

	It("shows what every other worker wrote before", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(lag))
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := range 3 {
					w.create(machine(fmt.Sprint("m", i)))
				}
			}()
			<-done
			Expect(w.listed()).To(ConsistOf("m0", "m1", "m2"))
		})
	})

	DescribeTable("does not wait again for what was shown, whatever version the store claims after that",
		func(claimed func(older string) string) {
			claim := ""
			inWorld(1, func(w lensWorld) {
				older := w.create(machine("a"))
				w.create(machine("b"))
				Expect(w.listed()).To(ConsistOf("a", "b"))
				claim = claimed(older.ResourceVersion)
				go func() {
					time.Sleep(time.Hour)
					w.stop()
				}()
				Expect(took(func() { Expect(w.listed()).To(ConsistOf("a", "b")) })).To(BeZero())
				time.Sleep(time.Hour)
			}, func(in machineinformers.Interface) machineinformers.Interface {
				return claiming{Interface: in, informer: claimingInformer{in.Machines().Informer(), &claim}}
			})
		},
		Entry("an older one", func(older string) string { return older }),
		Entry("none that is a number", func(string) string { return "none" }),
	)

	DescribeTable("shows every kind of write",
		func(write func(lensWorld, *v1alpha1.Machine), shown func(*v1alpha1.Machine) bool) {
			inWorld(1, func(w lensWorld) {
				made := w.create(machine("a"))
				w.server.Lag("machines", sim.Constantly(lag))
				write(w, made.DeepCopy())
				list, err := w.informers.Machines().Lister().List(labels.Everything())
				Expect(err).NotTo(HaveOccurred())
				Expect(list).To(HaveLen(1))
				Expect(shown(list[0])).To(BeTrue())
			})
		},
		Entry("update", func(w lensWorld, m *v1alpha1.Machine) {
			m.Spec.ProviderID = "x"
			_, err := w.machines().Update(w, m, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}, func(m *v1alpha1.Machine) bool { return m.Spec.ProviderID == "x" }),
		Entry("status update", func(w lensWorld, m *v1alpha1.Machine) {
			m.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
			_, err := w.machines().UpdateStatus(w, m, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}, func(m *v1alpha1.Machine) bool { return m.Status.CurrentStatus.Phase == v1alpha1.MachineTerminating }),
		Entry("patch", func(w lensWorld, m *v1alpha1.Machine) {
			_, err := w.machines().Patch(w, m.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}, func(m *v1alpha1.Machine) bool { return m.Labels["a"] == "b" }),
	)

	It("shows that a machine leaves, or has left", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("stays", finalizer))
			w.create(machine("goes"))
			w.server.Lag("machines", sim.Constantly(lag))
			Expect(w.machines().Delete(w, "stays", metav1.DeleteOptions{})).To(Succeed())
			Expect(w.listed()).To(ConsistOf("stays leaving", "goes"))
			Expect(w.machines().Delete(w, "goes", metav1.DeleteOptions{})).To(Succeed())
			Expect(w.listed()).To(ConsistOf("stays leaving"))
		})
	})

	It("does not wait for an object that vanished with the write", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a", finalizer))
			Expect(w.machines().Delete(w, "a", metav1.DeleteOptions{})).To(Succeed())
			m, err := w.machines().Get(w, "a", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			w.server.Lag("machines", sim.Constantly(lag))
			m.Finalizers = nil
			_, err = w.machines().Update(w, m, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(w.listed()).To(BeEmpty())
		})
	})

	It("shows a deletion of what the store has never shown", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(lag))
			w.create(machine("a", finalizer))
			Expect(w.machines().Delete(w, "a", metav1.DeleteOptions{})).To(Succeed())
			Expect(w.listed()).To(ConsistOf("a leaving"))
		})
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(lag))
			w.create(machine("a"))
			Expect(w.machines().Delete(w, "a", metav1.DeleteOptions{})).To(Succeed())
			Expect(w.listed()).To(BeEmpty())
		})
	})

	It("shows a deletion that another client had requested already", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a"))
			w.server.Lag("machines", sim.Constantly(lag))
			Expect(w.others.Machines(ns).Delete(w, "a", metav1.DeleteOptions{})).To(Succeed())
			Expect(apierrors.IsNotFound(w.machines().Delete(w, "a", metav1.DeleteOptions{}))).To(BeTrue())
			Expect(w.listed()).To(BeEmpty())
		})
	})

	It("does not wait for the deletion of a machine in whose place there is another one of that name", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a"))
			w.server.Hold("machines", "ours")
			Expect(w.machines().Delete(w, "a", metav1.DeleteOptions{})).To(Succeed())
			world.Create(w.others.Machines(ns), machine("a"))
			w.server.Compact() // the store is shown the new one, and not that the old one went
			w.server.Release("machines", "ours")
			time.AfterFunc(10*time.Minute, w.stop)
			Expect(w.listed()).To(ConsistOf("a"))
		})
	})

	It("shows the last write, though the answer to an earlier one comes later", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(lag))
			w.server.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.Name == "patient" && r.Verb == "patch" {
					return 0, time.Second
				}
				return 0, 0
			})
			label := func(name string) {
				_, err := w.machines().Patch(w, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			for _, name := range []string{"patient", "other"} {
				world.Create(w.others.Machines(ns), machine(name))
			}
			time.Sleep(2 * lag)
			var writes sync.WaitGroup
			writes.Go(func() { label("patient") })
			time.Sleep(500 * time.Millisecond)
			label("other")
			writes.Wait()
			list, err := w.informers.Machines().Lister().List(labels.Everything())
			Expect(err).NotTo(HaveOccurred())
			Expect(list).To(HaveLen(2))
			for _, m := range list {
				Expect(m.Labels).To(HaveKey("a"), m.Name)
			}
		})
	})

	It("remembers no deletion that it has shown", func() {
		inWorld(1, func(w lensWorld) {
			for i := range 100 {
				name := fmt.Sprint("m", i)
				w.create(machine(name))
				Expect(w.machines().Delete(w, name, metav1.DeleteOptions{})).To(Succeed())
				Expect(w.client.Remembered()).To(BeNumerically(">", 0), "it does remember")
				Expect(w.listed()).To(BeEmpty())
				Expect(w.client.Remembered()).To(BeZero())
			}
		})
	})

	It("survives a watch that breaks with history forgotten", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Hold("machines")
			w.create(machine("a"))
			w.server.Compact()
			w.server.Down(true)
			w.server.Down(false)
			go func() {
				time.Sleep(time.Minute)
				w.server.Release("machines")
			}()
			Expect(w.listed()).To(ConsistOf("a"))
		})
	})

	It("does not wait for others' writes, for other kinds', or for none", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("", sim.Constantly(lag))
			world.Create(w.others.Machines(ns), machine("a"))
			_, err := w.client.MachineV1alpha1().MachineSets(ns).Create(w, &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(took(func() { Expect(w.listed()).To(BeEmpty()) })).To(BeZero())
		})
	})

	It("covers machine sets and deployments", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("", sim.Constantly(lag))
			_, err := w.client.MachineV1alpha1().MachineSets(ns).Create(w, &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			_, err = w.client.MachineV1alpha1().MachineDeployments(ns).Create(w, &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(w.informers.MachineSets().Lister().List(labels.Everything())).To(HaveLen(1))
			Expect(w.informers.MachineDeployments().Lister().List(labels.Everything())).To(HaveLen(1))
		})
	})
})
