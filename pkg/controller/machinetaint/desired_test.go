// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"fmt"
	"maps"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/test/fixture"
)

const twoCounted = "2,counted=2,replicas=5"

// included is a fleet at rest whose replicas include its reserve.
func included(change ...viewChange) machinetaint.View {
	return atRest(append([]viewChange{replicas(5), note(api.AppliedExcessAnnotation, twoCounted)}, change...)...)
}

// oneIncluded is a fleet at rest whose replicas include its only machine in reserve.
func oneIncluded(change ...viewChange) machinetaint.View {
	return changed(fleet(4, 1, held("r1"), serving("s1"), serving("s2"), serving("s3")), append([]viewChange{note(api.AppliedExcessAnnotation, "1,counted=1,replicas=4")}, change...)...)
}

// splitting is a fleet at rest whose replicas are to include its reserve, and include growth by two that no machine may be created for yet.
func splitting(change ...viewChange) machinetaint.View {
	return atRest(append([]viewChange{inclusive, replicas(5), note(api.AppliedReplicasAnnotation, "3"), note(api.BoundsAnnotation, "1:5:2"), note(api.AppliedExcessAnnotation, "2,max=5")}, change...)...)
}

// undecided has not been told yet where any reserve is to be counted.
func undecided(v *machinetaint.View) {
	v.Settings.Accounting = func(*api.MachineDeployment) pool.Accounting { return "" }
}

func additive(v *machinetaint.View)   { v.Accounting = pool.Additive }
func hibernate(v *machinetaint.View)  { v.AllLeaving = true }
func rollingOut(v *machinetaint.View) { v.Rollout = true }

// remembered is what the last plan knew to be applied.
func remembered(applied string) viewChange {
	return func(v *machinetaint.View) { v.Memory.Applied, v.Memory.Known = applied, true }
}

// numbers expects a plan to add to spec.replicas, and to write this record of the excess.
func numbers(v machinetaint.View, added int, applied string) {
	GinkgoHelper()
	before := maps.Clone(v.Deployment.Annotations)
	p := machinetaint.New(v)
	Expect(p.Idle).To(BeFalse())
	Expect(p.Deployment.Replicas).To(Equal(added))
	text, written := p.Deployment.Annotations[api.AppliedExcessAnnotation]
	if applied == "" {
		Expect(written).To(BeFalse(), text)
	} else {
		Expect(p.Deployment.Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, applied))
		Expect(p.Memory.Applied).To(Equal(applied))
	}
	Expect(v.Deployment.Annotations).To(Equal(before), "the object of the view stays as it was")
}

var _ = DescribeTable("Replicas", numbers,
	Entry("do not include the reserve, by default", atRest(), 0, ""),
	Entry("include the reserve if the MachineDeployment wants that", atRest(note(api.AccountingAnnotation, "Inclusive")), 2, twoCounted),
	Entry("include it if the MachineDeployment wants that, whatever the default", atRest(additive, note(api.AccountingAnnotation, "Inclusive")), 2, twoCounted),
	Entry("include it if that is the default", atRest(inclusive), 2, twoCounted),
	Entry("do not include it if the MachineDeployment does not want that", atRest(inclusive, note(api.AccountingAnnotation, "Additive")), 0, ""),
	Entry("include it no more if that is the default", included(additive), -2, "2"),
	Entry("include it as before if there is no default", included(), 0, ""),
	Entry("include a single machine as before if there is no default", oneIncluded(), 0, ""),
	Entry("raised by a client beside a single machine, are raised for workload", oneIncluded(replicas(5)), 0, "1,counted=1,replicas=5"),
	Entry("include machines that get their Nodes while settings cannot be read", atRest(inclusive, note(api.BoundsAnnotation, "many")), 2, twoCounted),
	Entry("include machines that get their Nodes while bounds cannot be read, if the MachineDeployment wants that", atRest(additive, note(api.AccountingAnnotation, "Inclusive"), note(api.BoundsAnnotation, "many")), 2, twoCounted),
	Entry("that a client lowered include less of the reserve", included(replicas(4)), 0, "2,max=4,counted=1,replicas=4"),
	Entry("that a client lowered by the whole reserve include none of it", included(replicas(3)), 0, "2,max=3"),
	Entry("include it as before while settings cannot be read", included(note(api.BoundsAnnotation, "many")), 0, ""),
	Entry("raised by a client, are raised for workload, and the record follows", included(replicas(6)), 0, "2,counted=2,replicas=6"),
	Entry("include only machines that have a Node", atRest(inclusive, machine("r1", withoutNode, in(mcm.MachinePending))), 1, "2,counted=1,replicas=4"),
	Entry("include no more of it than max leaves beside growth that is to be split", splitting(), 0, ""),
	Entry("include as much of it as max leaves beside growth that is to be split", splitting(note(api.BoundsAnnotation, "1:6:2")), 1, "2,max=6,counted=1,replicas=6"),
	Entry("do not fall below min when the reserve is given up", included(inclusive, draining, note(api.BoundsAnnotation, "4:9")), 0, "1,max=9,counted=1,replicas=5"),
	Entry("may fall to min when the reserve is given up", included(inclusive, draining, note(api.BoundsAnnotation, "3:9")), 0, "2,max=9,counted=2,replicas=5"),
	Entry("grow by one if a client lowered them for a reserve machine that it named", atRest(replicas(2), machine("r1", named)), 1, ""),
	Entry("grow for named reserve machines that are gone", atRest(replicas(1), note(machineutils.TriggerDeletionByMCM, "gone,away")), 2, ""),
	Entry("below 0 are left as they are", atRest(replicas(-1)), 0, ""),
	Entry("do not grow again for a named machine that is being deleted", atRest(replicas(2), machine("r1", named, leaving)), 0, ""),
)

var _ = DescribeTable("A new reserve",
	func(waits bool, change ...viewChange) {
		v := changed(fleet(2, -1, serving("s1"), serving("s2")), append([]viewChange{excess(1)}, change...)...)
		p := machinetaint.New(v)
		Expect(p.Idle).To(Equal(waits))
		if waits {
			Expect(p).To(Equal(machinetaint.Plan{Idle: true}))
		}
	},
	Entry("waits until it is known where it is to be counted", true, undecided),
	Entry("waits for that if there was none for the last plan", true, undecided, remembered("")),
	Entry("does not wait where it always stays as it is", false),
	Entry("does not wait once that is known", false, undecided, additive),
	Entry("does not wait if the MachineDeployment says it", false, undecided, note(api.AccountingAnnotation, "Additive")),
	Entry("does not wait if it exists already", false, undecided, note(api.AppliedExcessAnnotation, "1")),
	Entry("does not wait if it existed for the last plan", false, undecided, remembered("1")),
)

var _ = Describe("A record of the excess that a client removed", func() {
	lost := func(change ...viewChange) machinetaint.View {
		return atRest(append([]viewChange{note(api.AppliedExcessAnnotation, ""), remembered("2")}, change...)...)
	}

	It("is written again before anything else changes, where replicas include the reserve", func() {
		counted := []viewChange{replicas(5), remembered(twoCounted)}
		numbers(lost(counted...), 0, twoCounted)
		numbers(lost(append(counted, excess(1), machine("r2", leaving))...), 0, twoCounted)
		numbers(lost(append(counted, replicas(3))...), 0, twoCounted)
	})

	It("is written as it is now, where replicas do not include the reserve", func() {
		numbers(lost(), 0, "2")
		numbers(lost(excess(1), machine("r2", leaving)), 0, "1")
		numbers(lost(replicas(2), machine("r1", named)), 1, "2")
	})

	It("is written again with the replicas that it was for", func() {
		v := lost(replicas(4), remembered(twoCounted))
		numbers(v, 0, twoCounted)
		Expect(machinetaint.New(v).Memory.Lowered.Times).To(BeZero(), "the reduction is not settled yet")
	})

	It("starts no patience and no delay before", func() {
		counted := []viewChange{replicas(5), remembered(twoCounted)}
		v := lost(append(counted, machine("r1", occupied))...)
		Expect(machinetaint.New(v).Memory.SurplusSince).To(BeZero())
		note(api.AppliedExcessAnnotation, twoCounted)(&v)
		Expect(machinetaint.New(v).Memory.SurplusSince).To(Equal(noon))
		v = lost(append(counted, machine("r1", in(mcm.MachinePending)))...)
		v.Settings.BootPatience = time.Minute
		Expect(machinetaint.New(v).Memory.Retry.Failures).To(BeZero())
		note(api.AppliedExcessAnnotation, twoCounted)(&v)
		Expect(machinetaint.New(v).Memory.Retry.Failures).To(Equal(1))
	})

	It("does not count beside a record that is there", func() {
		v := atRest(remembered("1"), note(api.BoundsAnnotation, "many"))
		numbers(v, 0, "")
		Expect(machinetaint.New(v).Report.Message).To(ContainSubstring("2 of 2 in reserve"))
	})
})

var _ = Describe("A reserve that replicas include, of which record and memory are lost", func() {
	lost := func(change ...viewChange) machinetaint.View {
		return included(append([]viewChange{inclusive, note(api.AppliedExcessAnnotation, "")}, change...)...)
	}
	// found is how many of the five replicas are the reserve's.
	found := func(v machinetaint.View) int { return 5 - machinetaint.New(v).Rule.Replicas }
	serve := func(names ...string) viewChange {
		return func(v *machinetaint.View) {
			for _, name := range names {
				v.Machines = append(v.Machines, serving(name))
			}
		}
	}

	DescribeTable("is found again", func(count int, change ...viewChange) {
		Expect(found(lost(change...))).To(Equal(count))
	},
		Entry("as the machines that replicas leave room for", 2),
		Entry("as the machines that replicas leave room for beside those that serve", 1, serve("s4")),
		Entry("but not if replicas leave room for none", 0, serve("s4", "s5")),
		Entry("but not if replicas leave less than room for none", 0, serve("s4", "s5", "s6")),
		Entry("without those that serve", 1, machine("r2", func(m *machinetaint.Machine) { *m = serving("r2") })),
		Entry("without those that boot", 1, machine("r2", withoutNode, in(mcm.MachinePending))),
		Entry("without those that leave", 1, machine("r2", leaving)),
		Entry("with those whose Node does not respond", 2, machine("r2", withoutNode, in(mcm.MachineUnknown))),
		Entry("as far as it is desired", 1, excess(1)),
		Entry("but not if none is desired", 0, excess(0)),
		Entry("but not if replicas do not include it", 0, additive),
		Entry("but not while machines are replaced", 0, rollingOut),
		Entry("but not if the last plan knew of none", 0, remembered("")),
		Entry("while settings are invalid, as the machines that replicas leave room for", 2, note(api.BoundsAnnotation, "many")),
		Entry("while settings are invalid, beside those that serve", 1, note(api.BoundsAnnotation, "many"), serve("s4")),
		Entry("but not while it cannot be read where it is counted", 0, note(api.AccountingAnnotation, "Sometimes")),
	)

	It("does not serve while settings are invalid, and is the same once they are valid", func() {
		v := lost(note(api.BoundsAnnotation, "many"))
		p := machinetaint.New(v)
		Expect(machineWrites(p)).To(BeEmpty())
		numbers(v, 0, p.Memory.Applied)
		valid := lost()
		valid.Memory = p.Memory
		Expect(found(valid)).To(Equal(2))
		Expect(machineWrites(machinetaint.New(valid))).To(BeEmpty())
	})

	It("is as large as desired for the replicas without it", func() {
		Expect(machinetaint.New(lost(note(api.BoundsAnnotation, "1:9:50%"))).Deployment.Field).To(BeNil(), "half of three, as it shows already")
		Expect(machinetaint.New(lost(note(api.BoundsAnnotation, "1:9:50%"))).Report.Message).To(ContainSubstring("2 of 2 in reserve"))
	})

	It("is recorded again", func() {
		numbers(lost(), 0, twoCounted)
	})

	It("does not serve", func() {
		Expect(machineWrites(machinetaint.New(lost()))).To(BeEmpty())
		Expect(machineWrites(machinetaint.New(lost(additive)))).To(Equal([]string{"r1 released (Released)", "r2 released (Released)"}))
	})
})

var _ = DescribeTable("When the cluster hibernates or is deleted",
	func(v machinetaint.View, desired string, going int) {
		hibernate(&v)
		p := machinetaint.New(v)
		Expect(p.Report.Message).To(ContainSubstring(desired))
		Expect(p.Rule.Going).To(HaveLen(going))
	},
	Entry("a reserve that replicas include goes with them", included(inclusive, replicas(0)), "of 0 in reserve", 2),
	Entry("a reserve that replicas include goes with them, whatever runs there", included(inclusive, replicas(0), machine("r1", withTolerantPod)), "of 0 in reserve", 2),
	Entry("a reserve that replicas include is desired no more", included(inclusive), "of 0 in reserve", 2),
	Entry("a reserve that replicas include is desired no more, and pods are considered while replicas remain", included(inclusive, replicas(5), machine("r1", withTolerantPod)), "of 0 in reserve", 1),
	Entry("a reserve beside replicas stays", atRest(replicas(0)), "of 2 in reserve", 0),
)

var _ = Describe("Without hibernation", func() {
	It("a reserve that replicas include goes machine by machine, also at zero replicas", func() {
		Expect(machinetaint.New(included(inclusive, replicas(0))).Rule.Applied.Excess).To(Equal(2))
	})
})

var _ = Describe("Growth that is still to be split over zones", func() {
	It("waits as before when replicas grow for a machine that is gone", func() {
		p := machinetaint.New(atRest(replicas(2), note(api.AppliedReplicasAnnotation, "2"), note(machineutils.TriggerDeletionByMCM, "gone")))
		Expect(p.Deployment.Replicas).To(Equal(1))
		Expect(entries(p.Deployment.Annotations)).To(Equal([]string{"applied-replicas=3"}))
	})
})

var _ = DescribeTable("A reduction of replicas that include the reserve",
	func(lasting bool, entry metav1.ManagedFieldsEntry) {
		v := included(inclusive, replicas(4))
		v.Deployment.ManagedFields = []metav1.ManagedFieldsEntry{entry}
		p := machinetaint.New(v)
		Expect(p.Memory.Lowered.Times).To(Equal(1))
		Expect(p.Memory.Lowered.Lasting).To(Equal(lasting))
	},
	Entry("lasts if an extension of Gardener made it", true, entry("gardener-extension-provider-gcp", "Update", 0, noClaim)),
	Entry("is tried again after a while if another client made it", false, entry("autoscaler", "Update", 0, noClaim)),
	Entry("is another client's if the extension wrote something else", false, entry("gardener-extension-provider-gcp", "Update", 0, `{"f:spec":{"f:paused":{}}}`)),
	Entry("is another client's if the extension wrote only status", false, func() metav1.ManagedFieldsEntry {
		e := entry("gardener-extension-provider-gcp", "Update", 0, noClaim)
		e.Subresource = "status"
		return e
	}()),
)

// requesting is a MachineDeployment of three, with a field, bounds if any, and what a Reserve requests.
func requesting(field int32, bounds, requested string) machinetaint.View {
	v := owned(field, "", "")
	v.Deployment.Annotations[api.RequestedExcessAnnotation] = requested
	if bounds != "" {
		v.Deployment.Annotations[api.BoundsAnnotation] = bounds
	}
	return v
}

var _ = Describe("What a Reserve requests", func() {
	DescribeTable("counts if it is more than the MachineDeployment's own excess, and is not in the field",
		func(field int32, bounds, requested, applied string, named bool) {
			p := machinetaint.New(requesting(field, bounds, requested))
			Expect(p.Idle).To(BeFalse())
			Expect(p.Deployment.Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, HavePrefix(applied)))
			if bounds == "" {
				Expect(p.Deployment.Field).To(BeNil())
			} else {
				Expect(*p.Deployment.Field).To(BeEquivalentTo(1), "what bounds come to")
			}
			if named {
				Expect(p.Report.Message).To(HaveSuffix("; Reserve shop requests 3"))
			} else {
				Expect(p.Report.Message).NotTo(ContainSubstring("Reserve shop"))
			}
		},
		Entry("than nothing", int32(-1), "", "shop=3", "3", true),
		Entry("than the field", int32(2), "", "shop=3", "3", true),
		Entry("but not less than the field", int32(4), "", "shop=3", "4", false),
		Entry("nor as much as the field", int32(3), "", "shop=3", "3", false),
		Entry("than bounds", int32(-1), "1:9:1", "shop=3", "3,max=9", true),
		Entry("within max", int32(-1), "1:5:1", "shop=3", "2,max=5", true),
	)

	It("leaves the reserve as it is where it is invalid", func() {
		p := machinetaint.New(requesting(2, "", "?"))
		Expect(p.Report.Reason).To(Equal(reserve.Reason("BoundsInvalid")))
		Expect(p.Report.Message).To(ContainSubstring("requested excess"))
	})

	It("is nothing where it is gone", func() {
		v := requesting(-1, "", "shop=0")
		Expect(machinetaint.New(v).Idle).To(BeTrue())
	})
})

var _ = DescribeTable("Claims of dedicated machines are removed",
	func(claimed string, kept bool) {
		v := requesting(-1, "1:9", "shop=1")
		v.Deployment.Annotations[api.ClaimedAnnotation] = claimed
		v.Machines = []machinetaint.Machine{{Machine: pool.Machine{Object: fixture.Machine("m", func(m *mcm.Machine) {
			m.Annotations = map[string]string{api.ReserveAnnotation: api.Reserve{}.String()}
		})}}}
		text, changed := machinetaint.New(v).Deployment.Annotations[api.ClaimedAnnotation]
		Expect(text).To(BeEmpty())
		Expect(changed).To(Equal(!kept))
	},
	Entry("not while the machine is in reserve", "3:m", true),
	Entry("when it has left", "3:other", false),
	Entry("when replicas are lower", "4:m", false),
	Entry("when they cannot be read", "?", false),
)

// restored is a pool of three with two in reserve as Gardener restores it in another seed: replicas, the template, and Machines with
// their annotations are there, and annotations of the MachineDeployment are lost.
func restored() machinetaint.View {
	v := owned(-1, "", "")
	v.Now = v.Deployment.CreationTimestamp.Add(time.Hour)
	v.Deployment.CreationTimestamp = metav1.NewTime(v.Now.Add(-3 * time.Second))
	v.Deployment.UID = "restored"
	v.Deployment.Spec.Replicas = 5
	v.Deployment.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{api.BoundsAnnotation: "3:9:2"}
	v.Accounting = pool.Inclusive
	for i := range 5 {
		m := fixture.Machine(fmt.Sprintf("m%d", i))
		m.Annotations = map[string]string{}
		if i > 2 {
			m.Annotations[api.ReserveAnnotation] = api.Reserve{Since: v.Now.Add(-time.Hour)}.String()
		}
		m.Status.CurrentStatus.Phase = mcm.MachineRunning
		v.Machines = append(v.Machines, machinetaint.Machine{Machine: pool.Machine{Object: m}})
	}
	return v
}

var _ = Describe("A MachineDeployment that was restored without annotations", func() {
	It("keeps its reserve until its share of the pool's excess is written, and then has as much", func() {
		v := restored()
		p := machinetaint.New(v)
		Expect(p.Idle).To(BeTrue())
		Expect(p.Again).To(Equal(5*time.Minute - 3*time.Second))
		v.Deployment.Annotations[api.ShareAnnotation] = "2"
		v.Deployment.Annotations[api.BoundsAnnotation] = "3:9:2"
		p = machinetaint.New(v)
		Expect(p.Idle).To(BeFalse())
		Expect(p.Deployment.Replicas).To(BeZero())
		Expect(p.Deployment.Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, "2,max=9,counted=2,replicas=5"))
		for _, m := range p.Machines {
			Expect(m.Mark).NotTo(Equal(machinetaint.Free), m.Name)
		}
	})

	It("does not count machines in reserve as its own during a rollout, which adds machines to those that serve", func() {
		v := restored()
		v.Deployment.Annotations[api.ShareAnnotation] = "2"
		v.Deployment.Annotations[api.BoundsAnnotation] = "3:9:2"
		v.Rollout = true
		Expect(machinetaint.New(v).Rule.Replicas).To(Equal(5))
	})

	DescribeTable("waits for no share", func(change func(*machinetaint.View)) {
		v := restored()
		change(&v)
		Expect(machinetaint.New(v).Idle).To(BeFalse())
	},
		Entry("that has not come for minutes", func(v *machinetaint.View) { v.Now = v.Now.Add(5 * time.Minute) }),
		Entry("that its pool does not have", func(v *machinetaint.View) {
			v.Deployment.Spec.Template.Spec.NodeTemplateSpec.Annotations = nil
		}),
		Entry("that its pool does not have, whatever the machines are", func(v *machinetaint.View) {
			v.Deployment.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{"other": "1"}
		}),
		Entry("without a machine in reserve", func(v *machinetaint.View) {
			v.Machines = v.Machines[:3]
			note(returned, "gone")(v)
		}),
		Entry("that is there already, and asks for none", func(v *machinetaint.View) { v.Deployment.Annotations[api.ShareAnnotation] = "0" }),
		Entry("where a Reserve requests one machine", func(v *machinetaint.View) { v.Deployment.Annotations[api.RequestedExcessAnnotation] = "shop=1" }),
		Entry("if its settings cannot be read", func(v *machinetaint.View) { v.Deployment.Annotations[api.DrainReserveAnnotation] = "maybe" }),
		Entry("if the last plan knew its reserve", func(v *machinetaint.View) { v.Memory = machinetaint.Memory{Known: true, Applied: twoCounted} }),
		Entry("where its reserve is on record", func(v *machinetaint.View) {
			v.Deployment.Annotations[api.AppliedExcessAnnotation] = "2,max=9,counted=2,replicas=5"
		}),
		Entry("where it asks for a reserve itself", func(v *machinetaint.View) { v.Deployment.Annotations[api.BoundsAnnotation] = "3:9:2" }),
	)

	DescribeTable("waits for its share", func(change func(*machinetaint.View)) {
		v := restored()
		change(&v)
		Expect(machinetaint.New(v)).To(Equal(machinetaint.Plan{Idle: true, Again: 5*time.Minute - 3*time.Second}))
	},
		Entry("also of a pool whose excess is not in bounds", func(v *machinetaint.View) {
			v.Deployment.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{api.PoolExcessAnnotation: "2"}
		}),
		Entry("also after plans that knew of no reserve", func(v *machinetaint.View) { v.Memory = machinetaint.Memory{Known: true} }),
	)

	It("waits for its share for five minutes to the last instant", func() {
		v := restored()
		v.Now = v.Deployment.CreationTimestamp.Add(5*time.Minute - 1)
		Expect(machinetaint.New(v)).To(Equal(machinetaint.Plan{Idle: true, Again: 1}))
	})

	It("does not count machines that are leaving when it finds its reserve again", func() {
		v := restored()
		v.Deployment.Annotations[api.ShareAnnotation], v.Deployment.Annotations[api.BoundsAnnotation] = "2", "3:9:2"
		found := machinetaint.New(v).Rule.Applied
		Expect(found.Counted).To(Equal(2))
		for i := range 2 {
			m := fixture.Machine(fmt.Sprintf("leaving-%d", i))
			m.DeletionTimestamp = &metav1.Time{Time: v.Now}
			m.Status.CurrentStatus.Phase = mcm.MachineTerminating
			v.Machines = append(v.Machines, machinetaint.Machine{Machine: pool.Machine{Object: m}})
		}
		Expect(machinetaint.New(v).Rule.Applied).To(Equal(found))
	})
})
