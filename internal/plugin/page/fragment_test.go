// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// attack is a name that breaks out of whatever does not escape it.
const attack = `'"><script>alert(1)</script><!--`

var _ = Describe("The fragments", func() {
	draws := func(o overview.Overview, v view) map[string]string {
		GinkgoHelper()
		fragments, err := renderFragments(o, history{}.record(o), v)
		Expect(err).NotTo(HaveOccurred())
		byID := map[string]string{}
		for _, f := range fragments {
			byID[f.ID] = string(f.HTML)
		}
		return byID
	}

	It("say what there is", func() {
		o := world(noon, 3, 2)
		o.Troubles = []overview.Trouble{{Object: "machine/garden/ma", What: "It burns", Do: "Put it out"}}
		o.Missing = []string{"pods: no rights to list them"}
		shown := draws(o, view{})
		Expect(shown["missing"]).To(ContainSubstring("pods: no rights to list them"))
		Expect(shown["troubles"]).To(And(ContainSubstring("1 problem<"), ContainSubstring("It burns"), ContainSubstring("Put it out")))
		Expect(shown["pool/garden/pool"]).To(And(ContainSubstring("R <b>3</b> + X <b>2</b>"), ContainSubstring(`href="/zone/garden/pool-z1"`), ContainSubstring("<b>2</b> reserve ready")))
		Expect(strings.Count(shown["pool/garden/pool"], "data-machine=")).To(Equal(5))
		Expect(shown["totals"]).To(ContainSubstring("3 <small>of 3</small>"))
	})

	It("are one for each pool, even if pools have the same name", func() {
		o := world(noon, 3, 2)
		other := world(noon, 1, 0).Pools[0]
		other.Zones[0].Name = "pool-y1"
		o.Pools = append(o.Pools, other)
		shown := draws(o, view{})
		Expect(shown["pool/garden/pool"]).To(ContainSubstring(`href="/zone/garden/pool-z1"`))
		Expect(shown).To(HaveKeyWithValue("pool/garden/pool+pool-y1", And(ContainSubstring(`id="pool/garden/pool&#43;pool-y1"`), ContainSubstring(`href="/zone/garden/pool-y1"`))))
	})

	It("say what buffers hold, and what they lack", func() {
		o := world(noon, 3, 2)
		o.Buffers = []overview.Buffer{
			{Namespace: "shop", Name: "web", Shape: "Deployment/web", Chunks: 2, Dedicated: "workload", Ready: overview.Condition{Status: "True", Reason: "Complete", Message: "all"}},
			{Namespace: "shop", Name: "new", Chunks: -1, Ready: overview.Condition{Status: "False", Reason: "NoRoom", Message: "raise max"}},
		}
		Expect(draws(o, view{})["buffers"]).To(And(ContainSubstring("<td>Complete</td>"), ContainSubstring("<td>workload</td>"), ContainSubstring("raise max"), ContainSubstring("unknown"), Not(ContainSubstring(">all<"))))
		Expect(draws(world(noon, 3, 2), view{})).NotTo(HaveKey("buffers"))
	})

	It("say what is booked for requests, and what they lack", func() {
		o := world(noon, 3, 2)
		o.Requests = []overview.Request{
			{Namespace: "shop", Name: "nightly", Pods: 3, Booked: "pool-z1=2", Left: "pool-z1=1", Ready: overview.Condition{Status: "True", Reason: "Provisioned", Message: "all"}},
			{Namespace: "shop", Name: "large", Pods: 40, Ready: overview.Condition{Status: "False", Reason: "Waiting", Message: "too few machines"}},
		}
		Expect(draws(o, view{})["requests"]).To(And(ContainSubstring("<td>Provisioned</td>"), ContainSubstring("<td>pool-z1=2</td><td>pool-z1=1</td>"), ContainSubstring("too few machines"), Not(ContainSubstring(">all<"))))
		Expect(draws(world(noon, 3, 2), view{})).NotTo(HaveKey("requests"))
	})

	It("say what Reserves want and have, and what they lack", func() {
		o := world(noon, 3, 2)
		o.Reserves = []overview.Reserve{
			{Namespace: "garden", Name: "night", Ready: overview.Condition{Status: "True", Reason: "NotRequested", Message: "nothing"}},
			{Namespace: "garden", Name: "office", Wanted: 15, Current: 14, ReadyMachines: 13, Active: []string{"day", "week"}, Next: &overview.Change{At: noon, Wanted: 12}, Ready: overview.Condition{Status: "False", Reason: "NoRoom", Message: "raise max"}},
		}
		Expect(draws(o, view{})["reserves"]).To(And(ContainSubstring("<td>NotRequested</td>"), ContainSubstring("<td>no schedule</td><td>none</td>"), Not(ContainSubstring(">nothing<")),
			ContainSubstring("raise max"), ContainSubstring(`>15</td><td class="number">14</td><td class="number">13</td><td>day, week</td><td>12 at `)))
		Expect(draws(world(noon, 3, 2), view{})).NotTo(HaveKey("reserves"))
	})

	It("say that nothing is wrong, and leave out what is not there", func() {
		shown := draws(overview.Overview{At: noon}, view{})
		Expect(shown["troubles"]).To(ContainSubstring("No problems found"))
		Expect(shown["pools"]).To(ContainSubstring("There are no MachineDeployments"))
		Expect(shown).NotTo(Or(HaveKey("balancers"), HaveKey("federated"), HaveKey("missing")))
	})

	It("fold what is wrong beyond the first", func() {
		o := overview.Overview{At: noon, Troubles: make([]overview.Trouble, shownTroubles+3)}
		Expect(draws(o, view{})["troubles"]).To(And(ContainSubstring("<summary>3 more</summary>"), ContainSubstring(`start="5"`)))
	})

	It("say what is unknown", func() {
		o := world(noon, 1, 0)
		o.PodsWaiting = -1
		o.Pools[0].Zones[0].Machines[0].Pods = -1
		Expect(draws(o, view{})["totals"]).To(ContainSubstring(`<span class="unknown">unknown</span>`))
		Expect(draws(o, view{"garden", "pool-z1"})["machines"]).To(ContainSubstring(`<span class="unknown">unknown</span>`))
	})

	It("list the machines of one zone with what is wrong with them", func() {
		o := world(noon, 2, 1)
		o.Pools[0].Zones[0].Machines[1].Why = "does not join"
		shown := draws(o, view{"garden", "pool-z1"})
		Expect(shown["machines"]).To(And(ContainSubstring(`id="machine/mb"`), ContainSubstring("does not join")))
		Expect(shown).To(HaveLen(3))
	})

	It("are none where there is no such zone", func() {
		Expect(draws(world(noon, 1, 1), view{"garden", "pool-z2"})).To(BeEmpty())
		Expect(draws(world(noon, 1, 1), view{"other", "pool-z1"})).To(BeEmpty())
	})

	It("show names as text, whatever they contain (law 4)", func() {
		o := hostile()
		for _, v := range []view{{}, {attack, attack}} {
			for id, html := range draws(o, v) {
				Expect(html).NotTo(ContainSubstring("<script"), id)
				Expect(html).NotTo(ContainSubstring("<!--"), id)
				Expect(html).NotTo(ContainSubstring(`'"`), id)
				Expect(html).NotTo(ContainSubstring("ZgotmplZ"), "what a template refused")
			}
		}
	})

	It("are drawn whatever there is, each with an id of its own", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			o := anything(t)
			fragments, err := renderFragments(o, history{}.record(o), view{})
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, f := range fragments {
				if seen[f.ID] {
					t.Fatalf("two fragments have the id %s", f.ID)
				}
				seen[f.ID] = true
			}
		})
	})
})

// hostile is an overview in which every text is an attack.
func hostile() overview.Overview {
	condition := overview.Condition{Status: attack, Reason: attack, Message: attack, Since: noon}
	machine := overview.Machine{Name: attack, Node: attack, Dedicated: attack, State: attack, Images: attack, Why: attack}
	zone := overview.Zone{Name: attack, Zone: attack, Asked: attack, ReserveReady: condition, Machines: []overview.Machine{machine}}
	return overview.Overview{
		At: noon, Missing: []string{attack}, Troubles: []overview.Trouble{{Object: attack, What: attack, Do: attack}},
		Pools:     []overview.Pool{{Namespace: attack, Name: attack, Excess: attack, Zones: []overview.Zone{zone}}},
		Balancers: []overview.Balancer{{Namespace: attack, Name: attack, Policy: attack, Targets: []overview.Target{{Name: attack, Why: attack}}}},
		Federated: []overview.Federated{{Namespace: attack, Name: attack, Workload: attack, Clusters: []overview.Cluster{{Name: attack}}}},
		Reserves:  []overview.Reserve{{Namespace: attack, Name: attack, Active: []string{attack}, Ready: overview.Condition{Status: "False", Reason: attack, Message: attack}}},
		Requests:  []overview.Request{{Namespace: attack, Name: attack, Booked: attack, Left: attack, Ready: overview.Condition{Status: "False", Reason: attack, Message: attack}}},
		Buffers:   []overview.Buffer{{Namespace: attack, Name: attack, Shape: attack, Dedicated: attack, Ready: overview.Condition{Status: "False", Reason: attack, Message: attack}}},
	}
}

// anything is an overview of any numbers, however little sense they make.
func anything(t *rapid.T) overview.Overview {
	number := rapid.IntRange(-3, 40)
	o := overview.Overview{At: noon.Add(time.Duration(number.Draw(t, "at")) * time.Second), PodsWaiting: number.Draw(t, "waiting")}
	for p := range rapid.IntRange(0, 3).Draw(t, "pools") {
		pool := overview.Pool{Name: fmt.Sprint(p), Skew: number.Draw(t, "skew")}
		for z := range rapid.IntRange(0, 3).Draw(t, "zones") {
			zone := overview.Zone{Name: fmt.Sprint(z), Replicas: number.Draw(t, "r"), Excess: number.Draw(t, "x"), Applied: number.Draw(t, "a")}
			if rapid.Bool().Draw(t, "bounded") {
				zone.Bounds = &overview.Bounds{Min: number.Draw(t, "min"), Max: number.Draw(t, "max")}
			}
			for m := range max(0, number.Draw(t, "machines")) {
				zone.Machines = append(zone.Machines, overview.Machine{Name: fmt.Sprint(m), State: rapid.SampledFrom(overview.States).Draw(t, "state")})
			}
			pool.Zones = append(pool.Zones, zone)
		}
		o.Pools = append(o.Pools, pool)
	}
	target := overview.Target{Max: ptr.To(number.Draw(t, "targetmax")), Current: number.Draw(t, "current"), Ready: number.Draw(t, "ready"), Wanted: number.Draw(t, "wanted")}
	o.Balancers = []overview.Balancer{{Replicas: number.Draw(t, "replicas"), Targets: []overview.Target{target}}}
	return o
}
