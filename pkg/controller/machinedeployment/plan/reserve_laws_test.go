// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// drawnSpares draws a MachineDeployment with a reserve, with machines of any kind in one or two MachineSets.
func drawnSpares(t *rapid.T) *spares {
	replicas, x := rapid.Int32Range(0, 4).Draw(t, "replicas"), rapid.Int32Range(0, 3).Draw(t, "excess")
	d := newDeployment(replicas, rolls(rapid.SampledFrom([]string{"0", "1", "2", "50%"}).Draw(t, "surge"), rapid.SampledFrom([]string{"0", "1", "50%"}).Draw(t, "unavailable")))
	if rapid.IntRange(0, 5).Draw(t, "recreate") == 0 {
		recreates(d)
	}
	var sets []part
	for _, name := range [][]string{{"new"}, {"old", "new"}, {"old"}, {}}[rapid.SampledFrom([]int{0, 0, 1, 1, 1, 2, 3}).Draw(t, "sets")] {
		machines := rapid.SliceOfN(rapid.SampledFrom([]rune("rrrreeRRRROBpPnNcCutTlUFf")), 0, 5).Draw(t, "machines")
		sets = append(sets, of(name, int32(max(0, len(machines)+rapid.IntRange(-1, 1).Draw(t, "more"))), string(machines), keptSized(rapid.Int32Range(0, 7).Draw(t, "sized"))))
	}
	s := withSpares(x, d, sets...)
	if most := rapid.Int32Range(-6, 6).Draw(t, "max"); most >= 0 {
		bounds(fmt.Sprintf("0:%d", most))(s)
	}
	if rapid.IntRange(0, 3).Draw(t, "other excess") == 0 {
		wants(rapid.Int32Range(0, 3).Draw(t, "excess now"))(s)
	}
	return s
}

// wanted returns X: what bounds leave of the excess.
func (s *spares) wanted() int {
	d := s.View.Deployment
	x, most := 0, pool.Unbounded
	if d.Spec.ExcessReplicas != nil {
		x = int(*d.Spec.ExcessReplicas)
	}
	if text, set := d.Annotations[api.BoundsAnnotation]; set {
		b, err := api.ParseBounds(text)
		if err != nil {
			panic(err)
		}
		most = int(b.Max)
	}
	return max(0, min(x, most-int(d.Spec.Replicas)))
}

// turn lets time go on, after a plan: machines that leave are gone, others boot if they can, and pods of machines that
// are gone run elsewhere. Some machines wait if sometimes is drawn.
func (s *spares) turn(sometimes func(string) bool) (moved bool) {
	var homeless []*corev1.Pod
	s.each(func(m *mcm.Machine) *mcm.Machine {
		node := m.Labels[mcm.NodeLabelKey]
		switch {
		case m.DeletionTimestamp != nil && !sometimes("stays"):
			homeless = append(homeless, s.pods[node]...)
			delete(s.pods, node)
			delete(s.Nodes, node)
			moved = true
			return nil
		case m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase == mcm.MachineUnknown && !sometimes("is Unknown"):
			m = m.DeepCopy()
			m.Status.CurrentStatus.Phase = mcm.MachineFailed
			moved = true
		case m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase != mcm.MachineRunning && m.Status.CurrentStatus.Phase != mcm.MachineFailed && m.Status.CurrentStatus.Phase != mcm.MachineTerminating && !sometimes("boots"):
			m = s.boot(m)
			m.Status.LastOperation = mcm.LastOperation{}
			moved = true
		}
		return m
	})
	for _, pod := range homeless {
		s.bind(pod)
	}
	return moved
}

// bind binds a pod to a machine that serves, one that runs none if there is one.
func (s *spares) bind(pod *corev1.Pod) {
	best := ""
	for _, m := range machinesOf(s.View) {
		node := s.Nodes[m.Labels[mcm.NodeLabelKey]]
		if node == nil || !isServing(m) || pool.HasReserveTaint(node.Spec.Taints) {
			continue
		}
		if best == "" || len(s.pods[node.Name]) < len(s.pods[best]) {
			best = node.Name
		}
	}
	if best != "" {
		s.occupy(best, pod)
	}
}

// checkDeletions holds the laws of what a plan deletes.
func (s *spares) checkDeletions(t *rapid.T, p Plan, story []string) {
	after := map[string]*mcm.Machine{}
	for _, m := range machinesOf(s.View) {
		after[m.Name] = m
	}
	for _, c := range p.Moves {
		switch m := s.machine(c.Name); c.Mark {
		case machinetaint.Free:
			after[c.Name] = pool.Unmark(m)
		case machinetaint.Hold:
			after[c.Name] = pool.Mark(m, s.settings.NewMark(s.Now))
		}
	}
	deleted := map[string]Reason{}
	for _, d := range p.Deletions {
		deleted[d.Machine.Name] = d.Reason
	}
	rollout := s.view().Reserve.Rollout
	idle := 0 // in reserve, closed and empty
	for name, m := range after {
		node := s.Nodes[m.Labels[mcm.NodeLabelKey]]
		closed := node == nil || pool.HasReserveTaint(node.Spec.Taints)
		empty := node == nil || len(s.pods[node.Name]) == 0
		if m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase != mcm.MachineTerminating && deleted[name] == "" && pool.Marked(m) && pool.Marked(s.machine(name)) && closed && empty {
			idle++
		}
		if reason := deleted[name]; reason == Surplus && pool.Marked(m) && (!closed || !empty && !rollout) {
			t.Fatalf("%s goes, closed %t, empty %t: %s\n%s", name, closed, empty, tale(p), strings.Join(story, "\n"))
		}
	}
	inPlace := s.View.Deployment.Spec.Strategy.Type == mcm.InPlaceUpdateMachineDeploymentStrategyType
	for name, reason := range deleted {
		busy := len(s.pods[after[name].Labels[mcm.NodeLabelKey]]) > 0
		if busy && !pool.Marked(after[name]) && reason == Surplus && idle > s.wanted() && (!rollout || inPlace) {
			t.Fatalf("%s goes with its pods, and %d wait in reserve, of %d desired: %s\n%s", name, idle, s.wanted(), tale(p), strings.Join(story, "\n"))
		}
	}
}

// available returns how many machines are ready and stay, without those beyond the sizes of their MachineSets, and how
// many of all stay so after a plan.
func (s *spares) available(p Plan) (before, after int) {
	for _, set := range s.View.Sets {
		ready := 0
		for _, m := range set.Machines {
			if !isServing(m) {
				continue
			}
			ready++
			if !slices.ContainsFunc(p.Deletions, func(d Deletion) bool { return d.Machine.UID == m.UID }) {
				after++
			}
		}
		before += min(ready, int(set.Object.Spec.Replicas))
	}
	return before, after
}

func (s *spares) sketch() string {
	words := []string{fmt.Sprintf("%d + %d", s.View.Deployment.Spec.Replicas, s.wanted())}
	for _, set := range s.View.Sets {
		text := fmt.Sprintf("%s %d of %s:", set.Object.Name, set.Object.Spec.Replicas, set.Object.Annotations[desired])
		for _, m := range set.Machines {
			text += fmt.Sprintf(" %s-%s", strings.TrimPrefix(m.Name, set.Object.Name+"-"), m.Status.CurrentStatus.Phase)
			if pool.Marked(m) {
				text += "*"
			}
			if m.DeletionTimestamp != nil {
				text += "x"
			}
			text += strings.Repeat("o", len(s.pods[m.Labels[mcm.NodeLabelKey]]))
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}

// settleSpares decides until nothing happens any more.
func (s *spares) settleSpares(t *rapid.T, story *[]string) {
	quiet := 0 // rounds in which nothing happened
	for range 120 {
		p := s.decide()
		*story = append(*story, s.sketch()+" => "+tale(p))
		s.checkDeletions(t, p, *story)
		empty := p.IsEmpty()
		s.carryOut(p)
		moved := s.turn(func(string) bool { return false })
		switch quiet++; {
		case !empty || moved:
			quiet, s.Now = 0, s.Now.Add(time.Second)
		case quiet == 10:
			return
		default:
			s.Now = s.Now.Add(p.Again)
		}
	}
	t.Fatalf("it never rests:\n%s", strings.Join(*story, "\n"))
}

// atRest reports whether R machines serve, and those that are wanted are in reserve, in the newest MachineSet.
func (s *spares) atRest() bool {
	serve, wait := 0, 0
	for _, set := range s.View.Sets {
		if set.Object != NewestOf(s.View.Deployment, setsOf(s.View)...) {
			if len(set.Machines) > 0 {
				return false
			}
			continue
		}
		for _, m := range set.Machines {
			switch {
			case !isServing(m):
				return false
			case pool.Marked(m):
				wait++
			default:
				serve++
			}
		}
	}
	return serve == int(s.View.Deployment.Spec.Replicas) && wait == s.wanted()
}

// tolerated says that pods which tolerate the reserve keep machines there.
func (s *spares) tolerated() bool {
	for _, pods := range s.pods {
		if slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return len(p.Spec.Tolerations) > 0 }) {
			return true
		}
	}
	return false
}

var _ = Describe("Any MachineDeployment with a reserve", func() {
	It("comes to rest with R machines that serve, and those in reserve that are wanted, in the newest set", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			s := drawnSpares(t)
			var story []string
			s.settleSpares(t, &story)
			if !s.atRest() && !s.tolerated() {
				t.Fatalf("%d and %d are wanted:\n%s", s.View.Deployment.Spec.Replicas, s.wanted(), strings.Join(story, "\n"))
			}
			if p := s.decide(); !p.IsEmpty() {
				t.Fatalf("%s:\n%s", tale(p), strings.Join(story, "\n"))
			}
		})
	})

	It("goes its way while machines boot and go when they like, and what is wanted changes", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			s := drawnSpares(t)
			var story []string
			for range rapid.IntRange(1, 10).Draw(t, "steps") {
				switch rapid.IntRange(0, 8).Draw(t, "event") {
				case 0:
					s.edit(func(d *api.MachineDeployment) { d.Spec.Replicas = rapid.Int32Range(0, 5).Draw(t, "replicas") })
				case 1:
					wants(rapid.Int32Range(0, 3).Draw(t, "excess"))(s)
				case 2:
					s.edit(func(d *api.MachineDeployment) {
						d.Spec.Template.Spec.Class.Name = rapid.SampledFrom([]string{"new", "old"}).Draw(t, "class")
					})
				}
				p := s.decide()
				story = append(story, s.sketch()+" => "+tale(p))
				s.checkDeletions(t, p, story)
				s.checkRollout(t, p, story)
				s.carryOut(p)
				s.turn(func(what string) bool { return rapid.Bool().Draw(t, what) })
				s.Now = s.Now.Add(rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Minute}).Draw(t, "later"))
			}
			s.settleSpares(t, &story)
			if !s.atRest() && !s.tolerated() {
				t.Fatalf("%d and %d are wanted:\n%s", s.View.Deployment.Spec.Replicas, s.wanted(), strings.Join(story, "\n"))
			}
		})
	})

	It("deletes none that pods run on in an update in place while more wait in reserve than are wanted", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			old, spare := rapid.IntRange(1, 4).Draw(t, "old"), rapid.IntRange(0, 3).Draw(t, "spares")
			d := newDeployment(int32(old))
			created := rapid.StringMatching(fmt.Sprintf("[RPC]{%d}", spare)).Draw(t, "newest")
			s := withSpares(int32(spare), d, of("old", int32(old), strings.Repeat("r", old)), of("new", int32(spare), created))
			how := manual
			if rapid.Bool().Draw(t, "auto") {
				how = auto(0, rapid.IntRange(0, 2).Draw(t, "unavailable in place"))
			}
			s.edit(func(d *api.MachineDeployment) { d.Spec.Strategy = how.strategy() })
			var story []string
			for range rapid.IntRange(1, 10).Draw(t, "steps") {
				if rapid.Bool().Draw(t, "another excess") {
					wants(rapid.Int32Range(0, 3).Draw(t, "excess"))(s)
				}
				p := s.decide()
				story = append(story, s.sketch()+" => "+tale(p))
				s.checkDeletions(t, p, story)
				s.carryOut(p)
				s.turn(func(what string) bool { return rapid.Bool().Draw(t, what) })
				s.Now = s.Now.Add(time.Second)
			}
		})
	})

	It("does not depend on the order of machines", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			s := drawnSpares(t)
			p := s.decide()
			s.View.Sets = slices.Clone(s.View.Sets)
			for i, set := range s.View.Sets {
				s.View.Sets[i].Machines = rapid.Permutation(set.Machines).Draw(t, "machines")
			}
			if again := s.decide(); tale(again) != tale(p) {
				t.Fatalf("%s\n%s", tale(p), tale(again))
			}
		})
	})
})

// checkRollout expects that a step of a rollout leaves as many machines ready, in reserve or not, as there are to be.
func (s *spares) checkRollout(t *rapid.T, p Plan, story []string) {
	d := s.View.Deployment
	v := s.view()
	total := machinetaint.New(*v.Reserve).Rule.Total // less than R + X after a machine could not be created
	scaled := slices.ContainsFunc(s.View.Sets, func(set Set) bool { return set.Object.Annotations[desired] != fmt.Sprint(total) })
	if !v.Reserve.Rollout || scaled || d.Spec.Strategy.RollingUpdate == nil || d.Spec.Strategy.Type != mcm.RollingUpdateMachineDeploymentStrategyType {
		return
	}
	whole := d.DeepCopy() // percentages are of all machines, those in reserve included
	whole.Spec.Replicas = int32(total)
	_, unavailable := Bounds(whole)
	before, after := s.available(p)
	if least := int(whole.Spec.Replicas - unavailable); after < min(before, least) {
		t.Fatalf("%d of %d stay ready, not %d: %s\n%s", after, before, least, tale(p), strings.Join(story, "\n"))
	}
}
