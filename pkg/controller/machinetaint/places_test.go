// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// outdated is longer than what the process decides on can be old: an outage, a silence, and a process that stood still, in a row.
const outdated = 10 * time.Minute

// places is what of pods, Nodes and marks matters to I2. All of it is known by the order of writes.
type places struct {
	writes int
	// closed is the write by which a Node got the reserve taint, bound that by which a pod got its Node.
	closed map[string]int
	bound  map[string]binding
	// reserve are the machines that are marked.
	reserve map[string]bool
	// workloads are how many machines workload was to have, and from when.
	workloads []workload
}

type binding struct {
	node string
	at   int
}

type workload struct {
	machines int
	since    time.Time
}

func newPlaces() places {
	return places{closed: map[string]int{}, bound: map[string]binding{}, reserve: map[string]bool{}}
}

// placed follows pods, Nodes, marks and replicas, and looks at I2 when a machine gets its mark.
func (g *guard) placed(w sim.Write) {
	p := &g.places
	p.writes++
	switch w.Resource {
	case "pods":
		node, _, _ := unstructured.NestedString(w.Object, "spec", "nodeName")
		if w.Effect == sim.Deleted || node == "" {
			delete(p.bound, w.Name)
		} else if p.bound[w.Name].node != node {
			p.bound[w.Name] = binding{node, p.writes}
		}
	case "nodes":
		if w.Effect == sim.Deleted || !tainted(world.Decoded[corev1.Node](w.Object).Spec.Taints) {
			delete(p.closed, w.Name)
		} else if p.closed[w.Name] == 0 {
			p.closed[w.Name] = p.writes
			if w.User == evenkeel && !p.reserve[w.Name] {
				g.looked["I2"]++ // its machine enters the reserve next, unless pods are found on it
			}
		}
	case "machinedeployments":
		d := world.Decoded[api.MachineDeployment](w.Object)
		p.workloads = append(p.workloads, workload{world.Workload(d), w.Time})
	case "machines":
		annotations, _, _ := unstructured.NestedStringMap(w.Object, "metadata", "annotations")
		is := w.Effect != sim.Deleted && annotations[api.ReserveAnnotation] != ""
		if is && !p.reserve[w.Name] && w.Effect != sim.Added && w.User == evenkeel {
			g.retired(w)
		}
		p.reserve[w.Name] = is
	}
}

// retired is I2 for a machine that enters the reserve. No pod was on it when its Node was closed: one that the scheduler bound after that
// had looked at the Node before. And workload keeps as many machines as it was to have lately, since what the process knows may be old.
func (g *guard) retired(w sim.Write) {
	p := &g.places
	for pod, b := range p.bound {
		if closed := p.closed[w.Name]; b.node == w.Name && (closed == 0 || b.at < closed) {
			g.broken = append(g.broken, fmt.Sprintf("I2: machine %s is put in reserve, and pod %s was on it when its Node was closed", w.Name, pod))
		}
	}
	left := -1 // this one
	for name := range g.class {
		if !p.reserve[name] {
			left++
		}
	}
	if least := p.least(w.Time); left < least {
		g.broken = append(g.broken, fmt.Sprintf("I2: machine %s is put in reserve, and workload is left %d machines of %d", w.Name, left, least))
	}
}

// inReserve reports whether machines are in reserve and stay.
func (g *guard) inReserve() bool {
	for name, is := range g.places.reserve {
		if is && !g.leaving[name] {
			return true
		}
	}
	return false
}

// least is the smallest number of machines that workload was to have lately.
func (p *places) least(now time.Time) int {
	for len(p.workloads) > 1 && now.Sub(p.workloads[1].since) > outdated {
		p.workloads = p.workloads[1:]
	}
	least := p.workloads[0].machines
	for _, w := range p.workloads {
		least = min(least, w.machines)
	}
	return least
}

// standIn has a machine fail, and come back when the one that stood in for it has got a pod that the process has not been shown.
func (c *cluster) standIn(victim string, wait time.Duration) {
	c.cloud.set(func() { c.cloud.sick = map[string]bool{victim: true} })
	time.Sleep(wait)
	c.Target.Hold("pods", evenkeel)
	c.work(1)
	time.Sleep(wait)
	c.cloud.set(func() { c.cloud.sick = nil })
	time.Sleep(wait)
	c.Target.Release("pods", evenkeel)
}
