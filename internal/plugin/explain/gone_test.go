// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/internal/plugin/explain"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = Describe("A machine whose MachineDeployment is gone, or hidden,", func() {
	It("is not said to be without a MachineDeployment if that could not be read", func() {
		w := newWorld()
		w.Sets, w.MachinesUnknown, w.Missing = nil, true, []string{"machinesets: no rights to list them"}
		Expect(machine(w, "c")).To(And(HavePrefix("Machine c: its MachineDeployment is not known\n"), ContainSubstring("machinesets: no rights to list them"), Not(ContainSubstring("does not manage it"))))
		Expect(deployment(w)).To(ContainSubstring("Not everything could be read (machinesets: no rights to list them)"))
	})

	It("goes with its MachineDeployment, whatever its place", func() {
		w := newWorld()
		w.Deployments[0].DeletionTimestamp = ptr.To(formatPast(time.Minute))
		Expect(machine(w, "c")).To(And(ContainSubstring("Its MachineDeployment is being deleted"), Not(ContainSubstring("to serve"))))
		Expect(deployment(w)).To(And(ContainSubstring("It is being deleted, since 11:59:00 UTC (60s ago)"), Not(ContainSubstring("at rest")), Not(ContainSubstring("When replicas are raised"))))
	})
})

// elsewhere adds another namespace with a MachineDeployment of the same name, with five replicas and
// no reserve, and machines of their own.
func elsewhere(w *world) *v1alpha1.MachineDeployment {
	d, set := w.Deployments[0].DeepCopy(), w.Sets[0].DeepCopy()
	d.Namespace, d.UID, d.Spec.Replicas, d.Spec.ExcessReplicas, d.Annotations = "elsewhere", "elsewhere", 5, nil, nil
	set.Namespace, set.UID, set.OwnerReferences = d.Namespace, "elsewhere-set", owned("MachineDeployment", d.UID)
	w.Deployments, w.Sets = slices.Insert(w.Deployments, 0, d), slices.Insert(w.Sets, 0, set)
	m := w.named("a").DeepCopy()
	m.Namespace, m.Name, m.UID, m.OwnerReferences, m.Labels = d.Namespace, "e", "e", owned("MachineSet", set.UID), map[string]string{mcm.NodeLabelKey: "e"}
	w.Machines = append(w.Machines, m)
	return d
}

var _ = Describe("What another namespace has of the same name", func() {
	It("does not change the explanation of a machine", func() {
		for _, name := range []string{"a", "b", "c", "d"} {
			w := newWorld()
			alone := machine(w, name)
			elsewhere(w)
			Expect(machine(w, name)).To(Equal(alone))
		}
	})

	It("has explanations of its own", func() {
		w := newWorld()
		elsewhere(w)
		Expect(machine(w, "e")).To(ContainSubstring("MachineDeployment = pool: R 5, X 0, A 0"))
	})

	DescribeTable("is drained alone", func(drained string, want string) {
		w := newWorld()
		w.Draining = map[string]bool{drained: true}
		Expect(deployment(w)).To(ContainSubstring(want))
		Expect(deployment(w)).To(ContainSubstring(map[bool]string{true: "about to be deleted", false: "It is at rest"}[drained == fixture.Namespace]))
	},
		Entry("there", "elsewhere", "The excess is 2, from spec.excessReplicas."),
		Entry("here", fixture.Namespace, "the manager runs with --drain-reserve"),
	)

	It("has no part of a Reserve", func() {
		w := office()
		alone := w.reserve()
		d := w.Deployments[0].DeepCopy()
		d.Namespace, d.UID, d.Spec.Replicas = "elsewhere", "elsewhere", 9
		w.Deployments = append(w.Deployments, d)
		w.hold(d, 1, 0)
		Expect(w.reserve()).To(Equal(alone))
	})
})

var _ = Describe("Machines that could not be read", func() {
	hide := func(w *world) {
		w.Machines, w.Sets, w.MachinesUnknown, w.Missing = nil, nil, true, []string{"machines, machinesets: no rights to list them"}
	}

	It("are not counted, and nothing is predicted from them", func() {
		w := newWorld()
		hide(w)
		a, err := Deployment(w.Objects, "pool")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Title).To(Equal("MachineDeployment pool: its machines could not be read"))
		Expect(a.Facts).To(ContainElement(Fact{"Machines", "cannot be read"}))
		Expect(a.Next).To(Equal([]string{"It depends on its machines, which could not be read."}))
	})

	It("are not missed by a Reserve", func() {
		w := office()
		hide(w)
		a, err := Reserve(w.Objects, "office")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Title).To(Equal("Reserve office: its machines could not be read"))
		Expect(a.Facts).To(Equal([]Fact{{"Requests", "4 machines"}, {"Ready", "True, Complete: 4 of 4"}}))
		Expect(a.Why).To(HaveExactElements("It requests 4 machines: spec.replicas is 4.", HavePrefix("Not everything could be read")))
		Expect(a.Next).To(Equal([]string{"It depends on machines, which could not be read."}))
	})

	It("leave what a schedule changes as it is known", func() {
		w := office()
		duty("0 7 * * *", "0 19 * * *", 6)(w, w.Reserves[0])
		hide(w)
		Expect(w.reserve()).To(ContainSubstring("A schedule changes the number to 4 machines in 7h"))
	})
})

var _ = Describe("A reader with only some rights", func() {
	It("is not told that the condition of a Reserve changes", func() {
		w := office()
		w.hold(w.Deployments[0], 0, 0)
		Expect(w.reserve()).To(ContainSubstring("The condition Ready is about to become"))
		w.Missing = []string{"nodes: no rights to list them"}
		Expect(w.reserve()).NotTo(ContainSubstring("The condition Ready is about to become"))
	})

	It("is not told that machines enter the reserve because their pods are hidden", func() {
		w := newWorld()
		d := w.Deployments[0]
		d.Spec.Replicas, d.Spec.ExcessReplicas = 1, ptr.To(int32(3))
		d.Annotations = map[string]string{v1alpha1.AppliedExcessAnnotation: "3", v1alpha1.WantedExcessAnnotation: "3"}
		Expect(deployment(w)).To(ContainSubstring("is about to enter the reserve"), "it is empty")
		w.PodsUnknown = true
		Expect(deployment(w)).NotTo(ContainSubstring("is about to enter the reserve"))
	})
})

var _ = It("The places of eight machines among those that go are looked for, and no more", func() {
	w := newWorld()
	w.Deployments[0].Spec.ExcessReplicas = ptr.To(int32(10))
	w.Deployments[0].Annotations = map[string]string{v1alpha1.AppliedExcessAnnotation: "10", v1alpha1.WantedExcessAnnotation: "10"}
	for i := range 8 {
		w.machine(fmt.Sprintf("x%d", i), time.Duration(20-i)*time.Minute, true)
	}
	w.Sets[0].Spec.Replicas = 12
	Expect(machine(w, "x7")).To(ContainSubstring("it is the 1st to be deleted"))
	Expect(machine(w, "x0")).To(ContainSubstring("it is the 8th to be deleted"))
	Expect(machine(w, "d")).NotTo(ContainSubstring("to be deleted"))
})
