// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Devices knows the devices of a cluster, and who has them. Package devices implements it.
type Devices interface {
	// Claimed returns what a waiting pod claims, nil if nothing. The error is why it cannot be
	// decided where the pod can run.
	Claimed(pod *corev1.Pod) (Claims, error)
}

// Claims are the claims of one pod to devices. They never change.
type Claims interface {
	// Shape is the same for pods of a namespace whose claims are interchangeable.
	Shape() string
	// Repeatable reports whether pods that are created like this one will have claims of their own
	// that are the same.
	Repeatable() bool
	// Reaches reports whether devices that the pod has already can be used on the node.
	Reaches(node *corev1.Node) bool
	// Possible considers a node as if none of its own devices were allocated.
	Possible(node *corev1.Node) Obstacle
	// Allocate chooses devices on the node, as the scheduler would if those of it that are taken were
	// allocated. It gives up before a part that costs more than a limit.
	Allocate(node *corev1.Node, taken []Device, limit int) Allocation
}

// Device is the name of a device: driver, pool and device.
type Device string

// Allocation is a choice of devices for a pod on a node.
type Allocation struct {
	// Obstacle is Fits, NoDevices or Undecided.
	Obstacle Obstacle
	Devices  []Device
	// Why is why it is undecided.
	Why string
	// Work is what it cost.
	Work int
	// Unfinished reports whether it gave up because of the limit.
	Unfinished bool
}

// errClaims is why nothing is decided about a pod with claims if nothing is known about devices.
var errClaims = errors.New("it claims devices")

// claimsUnread returns an error for a pod whose claims are not read yet; see [Pod.Located].
func claimsUnread(pod *corev1.Pod) error {
	if len(pod.Spec.ResourceClaims) > 0 {
		return errClaims
	}
	return nil
}

// claim reads the claims of a waiting pod. A pod that has a node has devices there, and it is not
// known which ones it would have elsewhere.
func (p *Pod) claim(devices Devices) {
	if devices == nil || p.Object.Spec.NodeName != "" || !p.clearAlone() && p.Unclear != errClaims.Error() {
		return
	}
	claims, err := devices.Claimed(p.Object)
	p.claims, p.Unclear = claims, ""
	if p.Object.Spec.SchedulingGroup != nil {
		p.Unclear = inGroup
	}
	if err != nil {
		p.claims, p.Unclear = nil, err.Error()
	}
}

// repeatable reports whether pods that are created like this one fit where it does.
func (p *Pod) repeatable() bool { return p.claims == nil || p.claims.Repeatable() }

// grants are the devices of pods that were put on a node, and have no allocated claims there yet.
type grants struct {
	all []grant
	// devices are those of all of them, in order, and text is the same in one word.
	devices []Device
	text    string
	// unknown reports whether it is not known which devices some of the pods have.
	unknown bool
}

// grant contains the devices of one pod.
type grant struct {
	pod     *Pod
	devices []Device
	unknown bool
}

func (g *grants) add(one grant) {
	g.all = append(g.all, one)
	g.sum()
}

// remove removes what a pod got last.
func (g *grants) remove(p *Pod) {
	for i := len(g.all) - 1; i >= 0; i-- {
		if g.all[i].pod == p {
			g.all = slices.Delete(g.all, i, i+1)
			g.sum()
			return
		}
	}
}

func (g *grants) sum() {
	g.devices, g.unknown = nil, false
	for _, one := range g.all {
		g.devices, g.unknown = append(g.devices, one.devices...), g.unknown || one.unknown
	}
	slices.Sort(g.devices)
	var text strings.Builder
	for _, d := range g.devices {
		text.WriteString(string(d))
		text.WriteByte(0)
	}
	g.text = text.String()
}

// request identifies what was asked: for a slot and the shape of a pod, with the devices that were
// taken.
type request struct {
	slot, kind int
	taken      string
}

// allocate returns the devices that a pod gets on a node. The room remembers what was expensive:
// packing tries the same again and again.
func (r *Room) allocate(p *Pod, i, limit int) Allocation {
	s := r.slots[i]
	if s.grants.unknown {
		return Allocation{Obstacle: Undecided, Why: "it is not known which devices a pod takes there"}
	}
	asked := request{i, r.shapeNumber(p), s.grants.text}
	if a, known := r.allocations[asked]; known {
		return a
	}
	a := p.claims.Allocate(s.node, s.grants.devices, limit)
	r.work += a.Work
	if !a.Unfinished && a.Work > 1 {
		r.allocations[asked] = a
	}
	return a
}

// take gives a pod devices on its node. If there are too few, it has none.
func (r *Room) take(p *Pod, i, limit int) {
	if p.claims == nil {
		return
	}
	a := r.allocate(p, i, limit)
	r.slots[i].grants.add(grant{p, a.Devices, a.Obstacle == Undecided})
}
