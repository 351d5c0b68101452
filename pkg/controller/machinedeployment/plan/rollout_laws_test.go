// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

// drawnRollout draws a MachineDeployment that rolls or recreates.
func drawnRollout(t *rapid.T, replicas int32) *api.MachineDeployment {
	surge := rapid.SampledFrom([]string{"0", "1", "2", "50%"}).Draw(t, "surge")
	unavailable := rapid.SampledFrom([]string{"0", "1", "2", "50%"}).Draw(t, "unavailable")
	d := newDeployment(replicas, rolls(surge, unavailable))
	if rapid.IntRange(0, 3).Draw(t, "recreate") == 0 {
		recreates(d)
	}
	if limit := rapid.Int32Range(-1, 2).Draw(t, "limit"); limit >= 0 {
		keepsSets(limit)(d)
	}
	return d
}

// drawnParts draws MachineSets of any size, with machines in any phase, and perhaps a new one.
func drawnParts(t *rapid.T) (all []part) {
	names := []string{"a", "b", "new"}
	for _, name := range names[:rapid.IntRange(0, 3).Draw(t, "sets")] {
		machines := rapid.SliceOfN(rapid.SampledFrom([]rune("rrrrpfutln")), 0, 5).Draw(t, "machines")
		changes := sometimes(t, "set", unrecorded, byHand, goes, isMarked, atRevision("7"), without, nothing, cutOff, orphanSet)
		all = append(all, of(name, rapid.Int32Range(0, 5).Draw(t, "size"), string(machines), changes...))
	}
	return all
}

// drawnDeployment draws a view of a MachineDeployment.
func drawnDeployment(t *rapid.T) View {
	d := drawnRollout(t, rapid.Int32Range(0, 5).Draw(t, "replicas"))
	for _, change := range sometimes(t, "state", paused, ends, unfinished, completed, within(60)) {
		change(d)
	}
	return viewOf(d, drawnParts(t)...)
}

// machinesOf returns all machines of a view, with the MachineSet of each.
func machinesOf(v View) (all []*mcm.Machine) {
	for _, s := range v.Sets {
		all = append(all, s.Machines...)
	}
	return all
}

// drive carries out plans until the view comes to rest, while all machines boot and go.
func drive(t *rapid.T, v View) View {
	for range 60 {
		p := New(v)
		leave := slices.ContainsFunc(machinesOf(v), func(m *mcm.Machine) bool { return m.DeletionTimestamp != nil })
		if p.IsEmpty() && !leave && equality.Semantic.DeepEqual(machinesOf(booted(v)), machinesOf(v)) {
			return v
		}
		v = booted(carriedOut(v, p))
	}
	t.Fatalf("never rests: %s: %s", sketch(v), steps(New(v)))
	return v
}

var _ = Describe("Any MachineDeployment", func() {
	It("comes to rest, with all machines in the new set (laws 7 and 6)", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			v := drawnDeployment(t)
			invalid := slices.ContainsFunc(v.Sets, func(s Set) bool { return s.Object.Spec.Selector == nil })
			end := drive(t, v)
			d := end.Deployment
			if d.DeletionTimestamp != nil {
				if len(d.Finalizers) > 0 || !slices.Contains(v.Deployment.Finalizers, Finalizer) {
					return // it waits for others, or is none of ours
				}
				if len(end.Sets) > 0 && !slices.ContainsFunc(v.Sets, func(s Set) bool { return s.Object.Labels["name"] != "d" || len(s.Object.Finalizers) == 0 }) {
					t.Fatalf("sets stay: %v", end.Sets)
				}
				return
			}
			if d.Spec.Paused || invalid {
				return
			}
			for _, s := range end.Sets {
				size, want := s.Object.Spec.Replicas, int32(0)
				if s.Object == NewestOf(d, setsOf(end)...) {
					want = d.Spec.Replicas
				}
				if s.Object.DeletionTimestamp == nil && (size != want || len(s.Machines) != int(want)) {
					t.Fatalf("%s has %d machines of %d, not %d: %s, then %s", s.Object.Name, len(s.Machines), size, want, sketch(v), sketch(end))
				}
			}
			if NewestOf(d, setsOf(end)...) == nil {
				t.Fatalf("it has no new set")
			}
		})
	})

	It("does not depend on the order of objects, and changes none of them", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			v := drawnDeployment(t)
			var was []any
			for _, s := range v.Sets {
				was = append(was, s.Object.DeepCopy())
				for _, m := range s.Machines {
					was = append(was, m.DeepCopy())
				}
			}
			was = append(was, v.Deployment.DeepCopy())
			p := New(v)
			var is []any
			for _, s := range v.Sets {
				is = append(is, s.Object)
				for _, m := range s.Machines {
					is = append(is, m)
				}
			}
			if !equality.Semantic.DeepEqual(was, append(is, v.Deployment)) {
				t.Fatalf("the view was changed")
			}
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
			v.Sets = slices.Clone(v.Sets)
			random.Shuffle(len(v.Sets), func(i, j int) { v.Sets[i], v.Sets[j] = v.Sets[j], v.Sets[i] })
			random.Shuffle(len(v.OrphanSets), func(i, j int) { v.OrphanSets[i], v.OrphanSets[j] = v.OrphanSets[j], v.OrphanSets[i] })
			for _, s := range v.Sets {
				random.Shuffle(len(s.Machines), func(i, j int) { s.Machines[i], s.Machines[j] = s.Machines[j], s.Machines[i] })
			}
			if again := New(v); steps(p) != steps(again) || !equality.Semantic.DeepEqual(p.Statuses, again.Statuses) || !equality.Semantic.DeepEqual(p.DeploymentStatus, again.DeploymentStatus) {
				t.Fatalf("%s\n%s", steps(p), steps(again))
			}
		})
	})

	It("gets no machine beyond surge, and loses none that serves beyond what may be unavailable, from wherever it starts (law 8)", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			v := drawnDeployment(t)
			d := v.Deployment
			if d.Spec.Strategy.RollingUpdate == nil || d.Spec.Paused || d.DeletionTimestamp != nil || slices.ContainsFunc(v.Sets, isScaledSet(d)) {
				return
			}
			p := New(v)
			surge, unavailable := Bounds(d)
			most, least := d.Spec.Replicas+surge, d.Spec.Replicas-unavailable
			var before, after, serves, stays int32
			for _, s := range v.Sets {
				machines, serving := Future(s, s.Object)
				before, serves = before+machines, serves+serving
				machines, serving = Future(s, setAfter(s.Object, p))
				after, stays = after+machines, stays+serving
			}
			for _, s := range p.NewSets {
				after += s.Spec.Replicas
			}
			if after > max(before, most) {
				t.Fatalf("%d machines become %d, not more than %d: %s", before, after, most, steps(p))
			}
			if stays < min(serves, least) {
				t.Fatalf("%d that serve become %d, not fewer than %d: %s", serves, stays, least, steps(p))
			}
		})
	})
})

// isScaledSet reports whether a size was decided for another number of replicas.
func isScaledSet(d *api.MachineDeployment) func(Set) bool {
	return func(s Set) bool { return s.Object.Annotations[desired] != fmt.Sprint(d.Spec.Replicas) }
}

func setsOf(v View) (all []*mcm.MachineSet) {
	for _, s := range v.Sets {
		all = append(all, s.Object)
	}
	return all
}

// course is a rollout that goes on while machines boot and go when they like, and writes are lost.
type course struct {
	t *rapid.T
	View
	story []string
}

// step carries out a plan, or only some of its changes of MachineSets, if one of these fails.
func (c *course) step() {
	p := New(c.View)
	c.story = append(c.story, sketch(c.View)+": "+moves(p))
	if rapid.IntRange(0, 4).Draw(c.t, "fails") == 0 {
		sets := p.Sets
		p = Plan{}
		c.story = append(c.story, "which fails")
		for _, change := range sets {
			if rapid.Bool().Draw(c.t, "written") {
				p.Sets = append(p.Sets, change)
			}
		}
	}
	going := map[string]*mcm.Machine{}
	for _, s := range c.Sets {
		for _, m := range s.Machines {
			if m.DeletionTimestamp != nil && rapid.Bool().Draw(c.t, "stays") {
				going[m.Name] = m
			}
		}
	}
	stay := map[string][]*mcm.Machine{}
	for _, s := range c.Sets {
		for _, m := range s.Machines {
			if going[m.Name] != nil {
				stay[s.Object.Name] = append(stay[s.Object.Name], m)
			}
		}
	}
	c.View = carriedOut(c.View, p)
	for i, s := range c.Sets {
		c.Sets[i].Machines = append(c.Sets[i].Machines, stay[s.Object.Name]...)
		for j, m := range c.Sets[i].Machines {
			if m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase != mcm.MachineRunning && rapid.Bool().Draw(c.t, "boots") {
				m = m.DeepCopy()
				m.Status.CurrentStatus.Phase = mcm.MachineRunning
				c.Sets[i].Machines[j] = m
			}
		}
	}
}

// check compares the machines with the bounds.
func (c *course) check() {
	d := c.Deployment
	surge, unavailable := Bounds(d)
	serving := 0
	for _, m := range machinesOf(c.View) {
		if isServing(m) {
			serving++
		}
	}
	if n := len(machinesOf(c.View)); n > int(d.Spec.Replicas+surge) {
		c.t.Fatalf("%d machines, not more than %d: %s\n%s", n, d.Spec.Replicas+surge, sketch(c.View), strings.Join(c.story, "\n"))
	}
	if serving < int(d.Spec.Replicas-unavailable) {
		c.t.Fatalf("%d serve, not fewer than %d: %s\n%s", serving, d.Spec.Replicas-unavailable, sketch(c.View), strings.Join(c.story, "\n"))
	}
}

var _ = It("A rollout stays within its bounds at each step, and ends with the last template (laws 7 and 8)", func() {
	rapid.Check(GinkgoTB(), func(t *rapid.T) {
		replicas := rapid.Int32Range(0, 6).Draw(t, "replicas")
		d := newDeployment(replicas, rolls(rapid.SampledFrom([]string{"0", "1", "2", "50%"}).Draw(t, "surge"), rapid.SampledFrom([]string{"0", "1", "2", "50%"}).Draw(t, "unavailable")))
		c := &course{t: t, View: viewOf(d, of("old", replicas, "rrrrrr"[:replicas]))}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "changes") == 0 {
				d := c.Deployment.DeepCopy()
				d.Generation++
				d.Spec.Template.Spec.Class.Name = rapid.SampledFrom([]string{"new", "old", "other"}).Draw(t, "class")
				d.Spec.Paused = rapid.IntRange(0, 3).Draw(t, "paused") == 0
				c.Deployment = d
			}
			c.step()
			c.check()
		}
		resumed := c.Deployment.DeepCopy()
		resumed.Spec.Paused = false
		c.Deployment = resumed
		end := drive(t, c.View)
		for _, s := range end.Sets {
			if newest := s.Object == NewestOf(end.Deployment, setsOf(end)...); newest && len(s.Machines) != int(replicas) || !newest && len(s.Machines) > 0 {
				t.Fatalf("%s has %d machines", s.Object.Name, len(s.Machines))
			}
		}
	})
})

var _ = It("Recreate never has machines of two templates, once it has begun (law 8)", func() {
	rapid.Check(GinkgoTB(), func(t *rapid.T) {
		replicas := rapid.Int32Range(1, 4).Draw(t, "replicas")
		c := &course{t: t, View: viewOf(newDeployment(replicas, recreates), of("old", replicas, "rrrr"[:replicas]))}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "changes") == 0 {
				d := c.Deployment.DeepCopy()
				d.Spec.Template.Spec.Class.Name = rapid.SampledFrom([]string{"new", "old", "other"}).Draw(t, "class")
				d.Spec.Replicas = rapid.Int32Range(0, 4).Draw(t, "replicas")
				c.Deployment = d
			}
			c.step()
			with := 0
			for _, s := range c.Sets {
				with += min(1, len(s.Machines))
			}
			if with > 1 {
				t.Fatalf("%d sets have machines: %s\n%s", with, sketch(c.View), strings.Join(c.story, "\n"))
			}
		}
	})
})
