// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/evenkeel/evenkeel/pkg/lens"
)

var _ = Describe("A list", func() {
	DescribeTable("from the server", func(o metav1.ListOptions, names ...string) {
		inWorld(1, func(w lensWorld) {
			time.Sleep(2 * time.Minute)
			w.create(machine("a"))
			w.server.Stale("machines", time.Minute)
			list, err := w.machines().List(w, o)
			Expect(err).NotTo(HaveOccurred())
			Expect(list.Items).To(HaveLen(len(names)))
		})
	},
		Entry("shows the present state", metav1.ListOptions{}, "a"),
		Entry("at version 0 shows the present state, too", metav1.ListOptions{ResourceVersion: "0"}, "a"),
		Entry("not older than version 0 may show a cached state", metav1.ListOptions{ResourceVersion: "0", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}),
	)

	It("with a selector begins with the machines that come first", func() {
		asked := 0
		first := func(m *v1alpha1.Machine) bool {
			asked++
			return m.Labels["first"] != ""
		}
		inWorldWith(lens.Options{First: first}, 1, func(w lensWorld) {
			for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
				m := machine(name)
				m.Labels = map[string]string{"pool": "x"}
				if name > "c" {
					m.Labels["first"] = "yes"
				}
				w.create(m)
			}
			lister := w.informers.Machines().Lister()
			for range 20 {
				list, err := lister.List(labels.SelectorFromSet(labels.Set{"pool": "x"}))
				Expect(err).NotTo(HaveOccurred())
				Expect(list).To(HaveLen(6))
				Expect(list[:3]).To(HaveEach(Satisfy(first)))
				Expect(list[3:]).NotTo(ContainElement(Satisfy(first)))
			}
			asked = 0
			Expect(lister.List(labels.Everything())).To(HaveLen(6))
			Expect(asked).To(BeZero(), "who asks for everything orders it")
		})
	})

	DescribeTable("returns the very objects of the store", func(change func(lensWorld, *v1alpha1.Machine)) {
		inWorld(1, func(w lensWorld) {
			change(w, w.create(machine("a", finalizer)))
			list, err := w.informers.Machines().Lister().List(labels.Everything())
			Expect(err).NotTo(HaveOccurred())
			held, err := w.informers.Machines().Lister().Machines(ns).Get("a")
			Expect(err).NotTo(HaveOccurred())
			Expect(list).To(HaveExactElements(BeIdenticalTo(held)))
		})
	},
		Entry("of a machine", func(lensWorld, *v1alpha1.Machine) {}),
		Entry("of one that terminates", func(w lensWorld, m *v1alpha1.Machine) {
			m.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
			Expect(second(w.machines().UpdateStatus(w, m, metav1.UpdateOptions{}))).To(Succeed())
			Expect(w.machines().Delete(w, "a", metav1.DeleteOptions{})).To(Succeed())
		}),
	)
})
