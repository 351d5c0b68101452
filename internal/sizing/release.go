// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"fmt"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// reserveTaint is ignored on machines that serve, are about to serve, or are released.
var reserveTaint = []string{v1alpha1.ReserveTaintKey}

// release raises replicas by the number of ready machines in reserve that the waiting pods need,
// and reports whether it did.
func (s *simulation) release() bool {
	if s.shapes.waiting() == 0 {
		return false
	}
	spares := s.spares()
	if len(spares) == 0 {
		return false
	}
	packing := s.packWaiting(spares)
	opened := packing.Opened[0]
	if opened == 0 {
		return false
	}
	if s.observe != nil {
		pods := 0
		for _, m := range spares[:opened] {
			pods += packing.Uncreated[m.Name]
		}
		s.observe(release{at: s.now, machines: opened, missing: s.excess() - len(spares) + opened, pods: pods})
	}
	s.replicas += opened
	return true
}

// spares returns the ready machines of the reserve, in the order in which they are released. There
// are no more than replicas may be raised by.
func (s *simulation) spares() []*machine {
	ready := map[string]*machine{}
	for _, m := range s.machines {
		if m.Reserve && m.Ready() {
			ready[m.Name] = m
		}
	}
	if len(ready) == 0 {
		return nil
	}
	var spares []*machine
	for _, name := range reserve.ReleaseOrder(s.view(), s.max()) {
		if ready[name] == nil {
			break // those after it come only when it has come
		}
		spares = append(spares, ready[name])
	}
	return spares
}

// runAutoscaler is a look of the autoscaler: it raises replicas by the machines that the waiting
// pods need in addition to those that are about to serve.
func (s *simulation) runAutoscaler() {
	s.scanning = false
	n := min(s.max()-s.replicas, s.shapes.waiting())
	if n <= 0 {
		return
	}
	for len(s.templates) < n {
		s.templates = append(s.templates, &machine{node: s.newNode(fmt.Sprintf("new-%06d", len(s.templates)))})
	}
	packing := s.packWaiting(s.templates[:n])
	if opened := packing.Opened[0]; opened > 0 {
		s.replicas += opened
		s.changed = true
	}
}

// packWaiting packs the waiting pods onto machines that are about to serve, and then onto others.
func (s *simulation) packWaiting(others []*machine) fit.Packing {
	var nodes []fit.Node
	for _, m := range s.machines {
		if !m.Reserve && !m.open {
			nodes = append(nodes, fit.Node{Object: m.node, Without: reserveTaint})
		}
	}
	group := fit.Group{Name: "pool", Limit: len(others)}
	for _, m := range others {
		nodes = append(nodes, fit.Node{Object: m.node, Without: reserveTaint, Closed: true})
		group.Nodes = append(group.Nodes, m.node.Name)
	}
	var d fit.Demand
	for _, shape := range s.shapes.oldest() {
		d.Uncreated = append(d.Uncreated, fit.Uncreated{Like: shape.like, Count: shape.waiting})
	}
	return fit.Pack(fit.NewRoom(nodes), d, []fit.Group{group})
}
