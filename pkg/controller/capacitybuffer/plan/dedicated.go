// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

const (
	// maxOwners is how many owners of dedicated machines there can be: the chunks of each are
	// packed separately.
	maxOwners = 20
	// maxParts is how many workloads and namespaces one owner can consist of.
	maxParts = 8
)

// ownerOf returns the owner whose pods alone may use the machines of a buffer (law 11); empty if
// all pods may.
func ownerOf(b *v1beta1.CapacityBuffer) (machine.Owner, *Problem) {
	text, set := b.Annotations[v1beta1.DedicatedAnnotation]
	if !set {
		return "", nil
	}
	var parts []string
	for word := range strings.SplitSeq(text, ",") {
		part := partOfOwner(b, strings.TrimSpace(word))
		if part == "" {
			return "", problem(reason.DedicationInvalid, "annotation dedicated: %.80q is invalid: use \"workload\" (which needs a scalableRef), \"namespace\" or \"namespace/NAME\"", word)
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	if parts = slices.Compact(parts); len(parts) > maxParts {
		return "", problem(reason.DedicationInvalid, "annotation dedicated: name at most %d workloads and namespaces", maxParts)
	}
	owner := strings.Join(parts, ",")
	if len(owner) > machine.MaxOwnerLength { // it would void the dedications of all owners in the same Reserve
		return "", problem(reason.DedicationInvalid, "annotation dedicated: the names of all workloads and namespaces have %d characters, more than %d: name fewer", len(owner), machine.MaxOwnerLength)
	}
	return machine.Owner(owner), nil
}

// owner returns the owner of a buffer, or why it does not own pods like this one.
func (b *Buffer) owner() (machine.Owner, *Problem) {
	owner, why := ownerOf(b.Object)
	if owner != "" && b.Newest != nil && !owner.Owns(b.Newest) {
		return "", problem(reason.DedicationInvalid, "annotation dedicated: another controller owns the pods of %s %s: use \"namespace\"", b.Object.Spec.ScalableRef.Kind, b.Object.Spec.ScalableRef.Name)
	}
	return owner, why
}

// partOfOwner returns a workload or a namespace, empty if the word names none.
func partOfOwner(b *v1beta1.CapacityBuffer, word string) string {
	name, other := strings.CutPrefix(word, "namespace/")
	ref := b.Spec.ScalableRef
	switch {
	case word == "namespace":
		return b.Namespace
	case word == "workload" && ref != nil && valid(ref.Name) && valid(strings.ToLower(ref.Kind)):
		return b.Namespace + "/" + ref.Kind + "/" + ref.Name
	case other && valid(name):
		return name
	}
	return ""
}

func valid(name string) bool { return len(validation.NameIsDNSSubdomain(name, false)) == 0 }

// class contains the chunks of all buffers whose machines are dedicated to the same owner.
type class struct {
	owner  machine.Owner
	shapes []shape
	known  map[string]int
	// sites are the MachineDeployments with the room that other classes leave.
	sites []site
	// target is the packing to work towards, and standing the packing on the machines that are
	// ready.
	target, standing packing
	// now is how many machines to request of each site.
	now []int
}

// add adds chunks, and returns the number of their shape.
func (c *class) add(pod *fit.Pod, chunks int) int {
	at, known := c.known[pod.Shape()]
	if !known {
		at = len(c.shapes)
		c.known[pod.Shape()], c.shapes = at, append(c.shapes, shape{chunk: pod})
	}
	c.shapes[at].count = min(c.shapes[at].count+chunks, math.MaxInt32)
	return at
}

// classOf returns the class of an owner, nil if there are too many.
func (r *round) classOf(owner machine.Owner) *class {
	owners := 0
	for _, c := range r.classes {
		if c.owner == owner {
			return c
		}
		if c.owner != "" {
			owners++
		}
	}
	if owner != "" && owners >= maxOwners {
		return nil
	}
	c := &class{owner: owner, known: map[string]int{}}
	r.classes = append(r.classes, c)
	return c
}

// remainder is what the classes so far leave of each site.
type remainder struct{ room, ready []int }

// sitesFor returns the sites of a class, with the room and the ready machines that other classes
// leave.
func (r *round) sitesFor(c *class, left remainder) []site {
	sites := slices.Clone(r.sites)
	for i := range sites {
		s := &sites[i]
		s.room, s.ready = left.room[i], left.ready[i]
		s.current = s.currentOf(c.owner)
	}
	return sites
}

// currentOf returns how many machines are requested for an owner.
func (s *site) currentOf(owner machine.Owner) int {
	rest := s.current
	for _, d := range s.dedicated {
		if d.Owner == owner {
			return min(int(d.Machines), s.current)
		}
		rest -= int(d.Machines)
	}
	if owner != "" {
		return 0
	}
	return max(0, rest)
}
