// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	. "github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves"
	reservesplan "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	pools "github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// zones are pools of one busy machine each, with bounds up to four machines and a number of machines that
// a Reserve requests.
func zones(requested map[string]int) *Objects {
	GinkgoHelper()
	o := stringAt()
	for _, name := range []string{"z1", "z2", "z3"} {
		n := requested[name]
		pool(o, name, 1, n, func(d *api.MachineDeployment) {
			d.Labels = map[string]string{"zoned": "yes"}
			if d.Annotations == nil {
				d.Annotations = map[string]string{}
			}
			d.Annotations[api.BoundsAnnotation], d.Spec.ExcessReplicas = "1:4", nil
			if n > 0 {
				d.Annotations[api.AppliedExcessAnnotation] += ",max=4"
				d.Spec.ReserveWitness = false
				delete(d.Annotations, api.WantedExcessAnnotation) // the field never asked for it
				d.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: api.ReserveReady, Status: mcm.ConditionTrue, Reason: "Complete"}}
			}
		})
	}
	return o
}

// reserveOf adds a Reserve as its controller leaves it.
func reserveOf(o *Objects, name, spec string) {
	GinkgoHelper()
	r := &autoscaling.Reserve{}
	Expect(yaml.Unmarshal([]byte(patched("Reserve", name, "spec: "+spec)), r)).To(Succeed())
	keepOne(o, r)
}

func keepOne(o *Objects, r *autoscaling.Reserve) {
	GinkgoHelper()
	r.Namespace = fixture.Namespace
	o.Reserves = append(o.Reserves, r)
	source := pools.NewList(pools.Objects{Sets: o.Sets, Machines: o.Machines})
	for range 3 {
		p := reservesplan.New(reservesplan.NewView(noon, o.Reserves, o.Deployments, source))
		for _, request := range p.Requests {
			for i, d := range o.Deployments {
				if d == request.Deployment {
					var err error
					o.Deployments[i], err = reserves.After(request)
					Expect(err).NotTo(HaveOccurred())
				}
			}
		}
		for i, d := range p.Decisions {
			o.Reserves[i] = d.After(noon.Add(-time.Hour))
		}
	}
}

const everyZone = "pools: {selector: {matchLabels: {zoned: 'yes'}}}"

func wish(spec string) string { return patched("Reserve", "shop", "spec: {"+spec+"}") }

// ends are the ends of all pools, one per line.
func ends(f Forecast) string {
	var lines []string
	for _, e := range f.End.Pools {
		lines = append(lines, e.Name+": "+short(e))
	}
	return strings.Join(lines, "\n")
}

var _ = Describe("A forecast of Reserves", func() {
	It("shows what a new one requests, what becomes of the machines, and when a schedule changes that", func() {
		_, text := told(*zones(nil), wish(everyZone+", replicas: 1, schedules: [{name: workdays, start: '0 7 * * *', end: '0 19 * * *', timeZone: Europe/Berlin, amount: 150%}]"))
		Expect(text).To(Equal(`Reserve default/shop: moving (0 of 5 machines are ready in 3 MachineDeployments; active: workdays)
  It requests 5 machines: spec.replicas is 1, the active schedule workdays results in 5 machines; the largest counts.
  Schedule workdays: 5 machines, active; ends in 6h (2026-11-21 18:00 UTC).
  A schedule changes the number to 1 machine in 6h (2026-11-21 18:00 UTC).
  machines requested in z1: 0 -> 2
  machines requested in z2: 0 -> 2
  machines requested in z3: 0 -> 1
MachineDeployment default/z1: moving
  annotation requested-excess none -> shop=2
MachineDeployment default/z2: moving
  annotation requested-excess none -> shop=2
MachineDeployment default/z3: moving
  annotation requested-excess none -> shop=1

In the end, if nothing else changes:
Reserve default/shop: 5 of 5 machines are ready in 3 MachineDeployments; active: workdays
  requested:  z1 0 -> 2, z2 0 -> 2, z3 0 -> 1
MachineDeployment default/z1: 1 of 1 machines serve, 2 in reserve
  serve:      z1-a
  new:        2 in reserve
MachineDeployment default/z2: 1 of 1 machines serve, 2 in reserve
  serve:      z2-a
  new:        2 in reserve
MachineDeployment default/z3: 1 of 1 machines serve, 1 in reserve
  serve:      z3-a
  new:        1 in reserve
`))
	})

	It("has schedules stand still, however soon they change something", func() {
		o := zones(nil)
		o.At = noon.Add(4*time.Minute + 58*time.Second)
		f, text := told(*o, wish("pools: {names: [z1]}, replicas: 1, schedules: [{name: soon, start: '5 12 * * *', duration: 1m, replicas: 3}]"))
		Expect(text).To(ContainSubstring("  Schedule soon: 3 machines, not active; starts in 2s (2026-11-21 12:05 UTC).\n  A schedule changes the number to 3 machines in 2s (2026-11-21 12:05 UTC).\n"))
		Expect(short(f.End.Pools[0])).To(Equal("R1 A1 serve a reserve  leave  new 0+1"), text)
		Expect(f.End.Rest).To(BeTrue())
	})

	It("shows a new one that requests nothing now", func() {
		_, text := told(*zones(nil), wish(everyZone+", schedules: [{name: night, start: '0 22 * * *', duration: 8h, replicas: 3}]"))
		Expect(text).To(Equal(`Reserve default/shop: at rest (no machines are requested now)
  It requests 0 machines: spec.replicas is 0.
  Schedule night: 3 machines, not active; starts in 10h (2026-11-21 22:00 UTC).
  A schedule changes the number to 3 machines in 10h (2026-11-21 22:00 UTC).
3 objects are at rest.
Nothing changes.
`))
	})

	It("counts one that is at rest, and does not show it", func() {
		o := zones(map[string]int{"z1": 2})
		reserveOf(o, "night", "{pools: {names: [z1]}, replicas: 2}")
		_, text := told(*o, "")
		Expect(text).To(Equal("4 objects are at rest.\nNothing changes.\n"))
	})

	It("shows which machines go when one requests less", func() {
		o := zones(map[string]int{"z1": 2})
		reserveOf(o, "shop", "{pools: {names: [z1]}, replicas: 2}")
		_, text := told(*o, wish("replicas: 1"))
		Expect(text).To(Equal(`Reserve default/shop: moving (1 of 1 machines are ready in 1 MachineDeployment)
  It requests 1 machine: spec.replicas is 1.
  machines requested in z1: 2 -> 1
MachineDeployment default/z1: moving (1 of 1 machines serve, 2 of 2 in reserve, 2 of these ready; Reserve shop requests 2)
  annotation requested-excess shop=2 -> shop=1
2 objects are at rest.

In the end, if nothing else changes:
Reserve default/shop: 1 of 1 machines are ready in 1 MachineDeployment
  requested:  z1 2 -> 1
MachineDeployment default/z1: 1 of 1 machines serve, 1 in reserve
  serve:      z1-a
  in reserve: z1-b
  leave:      z1-c
`))
	})

	It("has it take part in what is requested already: the largest request counts, and they do not add up", func() {
		o := zones(map[string]int{"z1": 2})
		reserveOf(o, "night", "{pools: {names: [z1]}, replicas: 2}")
		f, text := told(*o, wish(everyZone+", replicas: 3"))
		Expect(text).To(ContainSubstring("  machines requested in z1: 0 -> 1 (Reserve night counts there)\n  machines requested in z2: 0 -> 1\n"))
		Expect(ends(f)).To(Equal("z1: R1 A2 serve a reserve bc leave  new 0+0\nz2: R1 A1 serve a reserve  leave  new 0+1\nz3: R1 A1 serve a reserve  leave  new 0+1"))
	})

	It("has other MachineDeployments stand in where machines cannot be created", func() {
		o := zones(nil)
		o.Machines = append(o.Machines, fixture.Machine("z1-x", func(m *mcm.Machine) {
			m.OwnerReferences = ownedBy("MachineSet", "z1-set")
			m.Status.CurrentStatus.Phase = mcm.MachineCrashLoopBackOff
			m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: "ResourceExhausted"}
		}))
		f, _ := told(*o, wish(everyZone+", replicas: 3"))
		Expect(ends(f)).To(Equal("z1: R1 A0 serve a reserve  leave x new 0+0\nz2: R1 A2 serve a reserve  leave  new 0+2\nz3: R1 A1 serve a reserve  leave  new 0+1"))
	})

	It("leaves those of another namespace alone", func() {
		o := zones(map[string]int{"z1": 2})
		reserveOf(o, "shop", "{pools: {names: [z1]}, replicas: 2}")
		_, text := told(*o, strings.Replace(wish("replicas: 7, "+everyZone), "{name: shop}", "{name: shop, namespace: other}", 1))
		Expect(text).To(Equal(`Reserve other/shop: blocked (spec.pools selects no MachineDeployment in namespace other)
  It requests 7 machines: spec.replicas is 7.
  To change that: correct names, labels or worker pools.
4 objects are at rest.
Nothing changes.
`))
	})

	DescribeTable("shows what is wrong with one",
		func(spec, says string) {
			f, text := told(*zones(nil), wish(spec))
			Expect(text).To(HavePrefix("Reserve default/shop: blocked (" + says))
			Expect(text).To(HaveSuffix("3 objects are at rest.\nNothing changes.\n"))
			Expect(f.End.Rest).To(BeTrue())
		},
		Entry("an amount", everyZone+", amount: cpu=9x", `spec.amount: excess "cpu=9x": write a count`),
		Entry("a schedule", everyZone+", schedules: [{name: a, start: '0 27 * * *', duration: 1h, replicas: 2}]", `schedule a: start: time "0 27 * * *": hour "27": write numbers from 0 to 23`),
		Entry("a selector", "pools: {selector: {matchExpressions: [{key: a, operator: Near}]}}, replicas: 1", `spec.pools.selector: "Near" is not a valid label selector operator`),
		Entry("a selector that selects nothing", "pools: {names: [none]}, replicas: 1", "spec.pools selects no MachineDeployment in namespace default)\n  It requests 1 machine: spec.replicas is 1.\n  To change that: correct names, labels or worker pools."),
	)

	It("refuses to change one, and leaves annotations as they are, where Reserves cannot be read", func() {
		o := zones(map[string]int{"z1": 2})
		reserveOf(o, "night", "{pools: {names: [z1]}, replicas: 2}")
		o.Reserves, o.Unread = nil, map[string]string{"reserves": "no rights to list them"}
		_, text := told(*o, "")
		Expect(text).To(Equal("3 objects are at rest.\nNothing changes.\n"))
		_, err := after(*o, wish("replicas: 1"))
		Expect(err).To(MatchError("change Reserve default/shop: the reserves of the cluster could not be read: no rights to list them"))
	})
})
