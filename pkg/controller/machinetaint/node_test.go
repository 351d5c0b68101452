// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"maps"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var (
	reserveTaint = corev1.Taint{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}
	otherTaint   = corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule}
)

// tainted replaces the taints of a machine's Node.
func tainted(taints ...corev1.Taint) machineChange {
	return func(m *machinetaint.Machine) { m.Node.Spec.Taints = taints }
}

// nodeNoted sets annotations of a machine's Node, by pairs of key and value.
func nodeNoted(pairs ...string) machineChange {
	return func(m *machinetaint.Machine) {
		m.Node.Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m.Node.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

const (
	since = "2026-11-22T11:00:00Z"
	kept  = api.ScaleDownDisabledAnnotation
	mark  = api.ReserveAnnotation
)

var _ = DescribeTable("The Node of a machine in reserve",
	func(change machineChange, written ...string) {
		v := atRest(machine("r1", change))
		p := machinetaint.New(v)
		if len(written) == 0 {
			Expect(nodeWrites(p)).To(BeEmpty())
		} else {
			Expect(nodeWrites(p)).To(Equal(written))
			Expect(p.Nodes[0].Machine).To(Equal(v.Machines[0]))
		}
		Expect(machineWrites(p)).To(BeEmpty())
	},
	Entry("is left alone with the whole mark", unchanged),
	Entry("gets the whole mark in one write", func(m *machinetaint.Machine) { m.Node = fixture.Node("r1") },
		"r1 held: reserve:NoSchedule; scale-down-disabled=true reserve="+since),
	Entry("gets the taint that it lacks", tainted(), "r1 held: reserve:NoSchedule;"),
	Entry("keeps the taints of others", tainted(otherTaint), "r1 held: other:NoSchedule reserve:NoSchedule;"),
	Entry("keeps a reserve taint whose value another client set",
		tainted(corev1.Taint{Key: api.ReserveTaintKey, Value: "by-hand", Effect: corev1.TaintEffectNoSchedule})),
	Entry("needs the taint with each effect",
		tainted(corev1.Taint{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectPreferNoSchedule}), "r1 held: reserve:PreferNoSchedule reserve:NoSchedule;"),
	Entry("gets the time that it lacks", nodeNoted(kept, "true"), "r1 held: reserve:NoSchedule; reserve="+since),
	Entry("gets the right time", nodeNoted(kept, "true", mark, "yesterday"), "r1 held: reserve:NoSchedule; reserve="+since),
	Entry("is kept from cluster-autoscaler", nodeNoted(mark, since), "r1 held: reserve:NoSchedule; scale-down-disabled=true"),
	Entry("is kept from it whatever another client wrote", nodeNoted(mark, since, kept, "false"), "r1 held: reserve:NoSchedule; scale-down-disabled=true"),
	Entry("is left as the template has it, which machine-controller-manager restores at each look", func(m *machinetaint.Machine) {
		templateOf(m).Annotations[kept] = "false"
		nodeNoted(mark, since, kept, "false")(m)
	}),
	Entry("shows the time of the template",
		func(m *machinetaint.Machine) { templateOf(m).Annotations[mark] = "2026-11-22T10:00:00Z" },
		"r1 held: reserve:NoSchedule; reserve=2026-11-22T10:00:00Z"),
	Entry("shows the time of the mark where the template lost it", func(m *machinetaint.Machine) { templateOf(m).Annotations = nil }),
	Entry("shows the present where no time was recorded", func(m *machinetaint.Machine) {
		templateOf(m).Annotations = nil
		m.Object.Annotations[mark] = api.Reserve{Since: eleven, Taints: []corev1.Taint{reserveTaint}}.String()
	}, "r1 held: reserve:NoSchedule; reserve=2026-11-22T12:00:00Z"),
	Entry("is not written while it is being deleted", func(m *machinetaint.Machine) { tainted()(m); nodeLeaving(m) }),
	Entry("is not written while its machine is being deleted", func(m *machinetaint.Machine) { tainted()(m); leaving(m) }),
	Entry("is not there yet", withoutNode),
)

var _ = Describe("A reserve taint that evicts pods", func() {
	evict := func(v *machinetaint.View) {
		v.Settings = evicting
		v.Machines[0], v.Machines[1] = heldBy(evicting, "r1"), heldBy(evicting, "r2")
	}
	bare := func(m *machinetaint.Machine) { m.Node.Spec.Taints = nil }

	It("goes from the Node with the setting, but not one of another client", func() {
		mine := corev1.Taint{Key: "mine", Effect: corev1.TaintEffectNoExecute}
		Expect(nodeWrites(machinetaint.New(atRest(machine("r1", tainted(append(evicting.Taints(), mine)...)))))).To(Equal([]string{"r1 held: reserve:NoSchedule mine:NoExecute;"}))
		Expect(nodeWrites(machinetaint.New(atRest(machine("r1", tainted(reserveTaint, mine)))))).To(BeEmpty())
	})

	It("is put on the Node of an empty machine in reserve", func() {
		expectAtRest(machinetaint.New(atRest(evict)))
		Expect(nodeWrites(machinetaint.New(atRest(evict, machine("r1", bare))))).To(Equal([]string{"r1 held: reserve:NoSchedule reserve:NoExecute;"}))
	})

	It("goes from the Node with the setting, once the template does not contain it any more", func() {
		both := tainted(evicting.Taints()...)
		Expect(nodeWrites(machinetaint.New(atRest(machine("r1", both))))).To(Equal([]string{"r1 held: reserve:NoSchedule;"}))
		v := atRest(evict, func(v *machinetaint.View) { v.Settings = plain })
		Expect(nodeWrites(machinetaint.New(v))).To(BeEmpty(), "machine-controller would put it back")
		Expect(machineWrites(machinetaint.New(v))).To(Equal([]string{"r1 held", "r2 held"}))
	})

	It("stays on the Node while the settings want it, also before the template contains it", func() {
		v := atRest(machine("r1", tainted(evicting.Taints()...), withTolerantPod))
		v.Settings = evicting
		Expect(about("r1", nodeWrites(machinetaint.New(v)))).To(BeEmpty())
	})

	It("does not evict pods that tolerate the reserve", func() {
		Expect(nodeWrites(machinetaint.New(atRest(evict, machine("r1", bare, withTolerantPod))))).To(Equal([]string{"r1 held: reserve:NoSchedule;"}))
	})

	It("does not evict pods that came while the machine enters the reserve", func() {
		p := machinetaint.New(atRest(evict, replicas(2), excess(3), note(api.AppliedExcessAnnotation, "3"), machine("s2", idle)))
		Expect(machineWrites(p)).To(Equal([]string{"s2 held (Retired)"}))
		Expect(nodeWrites(p)).To(Equal([]string{"s2 held: reserve:NoSchedule; scale-down-disabled=true reserve=2026-11-22T12:00:00Z"}))
	})
})

var _ = DescribeTable("The Node of a machine that serves",
	func(change machineChange, written ...string) {
		v := atRest(machine("s1", change))
		p := machinetaint.New(v)
		if len(written) == 0 {
			Expect(about("s1", nodeWrites(p))).To(BeEmpty())
			return
		}
		Expect(nodeWrites(p)).To(Equal(written))
		Expect(p.Nodes[0].Machine).To(Equal(v.Machines[2]))
	},
	Entry("is left alone without a mark", unchanged),
	Entry("loses the taint, and only that", tainted(otherTaint, reserveTaint), "s1 released: other:NoSchedule;"),
	Entry("loses the taint with any effect", tainted(corev1.Taint{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoExecute}), "s1 released:;"),
	Entry("loses the time, and may be scaled down", nodeNoted(mark, since, kept, "true"), "s1 released:; scale-down-disabled= reserve="),
	Entry("loses only the time if another client has allowed its scale-down", nodeNoted(mark, since), "s1 released:; reserve="),
	Entry("stays disabled for scale-down where another client wanted that", nodeNoted(kept, "true")),
	Entry("stays disabled where only the taint is left of the mark",
		func(m *machinetaint.Machine) { nodeNoted(kept, "true")(m); tainted(reserveTaint)(m) }, "s1 released:;"),
	Entry("stays disabled where the template wants that", func(m *machinetaint.Machine) {
		nodeNoted(mark, since, kept, "true")(m)
		templateOf(m).Annotations = map[string]string{kept: "true"}
	}, "s1 released:; reserve="),
	Entry("stays disabled while machine-controller-manager replaces machines", nodeNoted(mark, since, kept, "true", machinetaint.KeptByRollout, "true"), "s1 released:; reserve="),
	Entry("keeps a reserve taint that its template has by itself", func(m *machinetaint.Machine) {
		tainted(reserveTaint)(m)
		templateOf(m).Spec.Taints = []corev1.Taint{reserveTaint}
	}),
	Entry("loses a reserve taint of another effect than that of its template", func(m *machinetaint.Machine) {
		tainted(reserveTaint, corev1.Taint{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoExecute})(m)
		templateOf(m).Spec.Taints = []corev1.Taint{reserveTaint}
	}, "s1 released: reserve:NoSchedule;"),
	Entry("keeps the taint of its template when it loses the time", func(m *machinetaint.Machine) {
		tainted(reserveTaint)(m)
		nodeNoted(mark, since)(m)
		templateOf(m).Spec.Taints = []corev1.Taint{reserveTaint}
	}, "s1 released: reserve:NoSchedule; reserve="),
	Entry("is not written while it is being deleted", func(m *machinetaint.Machine) { tainted(reserveTaint)(m); nodeLeaving(m) }),
	Entry("is not written while its machine is being deleted", func(m *machinetaint.Machine) { tainted(reserveTaint)(m); leaving(m) }),
)

var _ = Describe("Nodes", func() {
	It("are released before others are held", func() {
		v := atRest(machine("r1", tainted()), machine("s1", tainted(reserveTaint)))
		Expect(nodeWrites(machinetaint.New(v))).To(Equal([]string{"s1 released:;", "r1 held: reserve:NoSchedule;"}))
	})

	It("are not written while the target cluster does not respond", func() {
		Expect(machinetaint.New(atRest(unreachable, machine("r1", tainted()), machine("s1", tainted(reserveTaint)))).Nodes).To(BeEmpty())
	})

	It("are released with their machine, and held with it", func() {
		p := machinetaint.New(atRest(machine("r1", occupied)))
		Expect(machineWrites(p)).To(Equal([]string{"r1 released (Occupied)"}))
		Expect(nodeWrites(p)).To(Equal([]string{"r1 released:; scale-down-disabled= reserve="}))
	})
})

var _ = DescribeTable("What machine-controller-manager recorded of the mark on a Node that is released",
	func(recorded, left string) {
		v := atRest(machine("r1", occupied, func(m *machinetaint.Machine) {
			m.Node.Annotations = maps.Clone(m.Node.Annotations)
			m.Node.Annotations[machineutils.LastAppliedALTAnnotation] = recorded
		}))
		written := machinetaint.New(v).Nodes[0].Annotations
		if left == "" {
			Expect(written).NotTo(HaveKey(machineutils.LastAppliedALTAnnotation))
		} else {
			Expect(written).To(HaveKeyWithValue(machineutils.LastAppliedALTAnnotation, MatchJSON(left)))
		}
	},
	Entry("is removed from the record, and the rest stays",
		`{"metadata":{"annotations":{"mine":"1","`+mark+`":"`+since+`"}},"spec":{"taints":[{"key":"mine","effect":"NoExecute"},{"key":"`+api.ReserveTaintKey+`","effect":"NoSchedule"}]}}`,
		`{"metadata":{"annotations":{"mine":"1"}},"spec":{"taints":[{"key":"mine","effect":"NoExecute"}]}}`),
	Entry("leaves the record as it is if it has nothing of the mark", `{"metadata":{"annotations":{"mine":"1"}},"spec":{}}`, ""),
	Entry("leaves the record as it is if only a part of it can be read", `{"metadata":{"annotations":{"`+mark+`":"`+since+`"}},"spec":"broken"}`, ""),
	Entry("leaves the record as it is if it cannot be read", `{`, ""),
)
