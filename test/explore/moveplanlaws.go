// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
)

// misplanned returns the law that a plan breaks, by what is known.
func (k *knownZones) misplanned(r *rebalance) string {
	var before, after, total int
	for i := range zones {
		z := &k.zones[i]
		next, ready := z.ownShare(), k.ready(i)
		if one := &r.writes[i]; one.pending {
			next = one.to.ownShare()
			if broken := k.miswritten(i, one); broken != "" {
				return broken
			}
		}
		total = max(total, int(z.pool))
		before, after = before+min(z.ownShare(), ready, z.roomBelowMax()), after+min(next, ready)
	}
	if after < min(before, total) {
		return fmt.Sprintf("B6: %d machines in reserve are ready, and only %d of them stay, of %d.", before, after, total)
	}
	return ""
}

// miswritten returns the law that the write of one MachineDeployment breaks.
func (k *knownZones) miswritten(i int, one *moveWrite) string {
	z, other, gone := &k.zones[i], &k.zones[1-i], int(one.gone)-1
	promises := one.to.move.machine > 0 && z.move.id == 0
	switch {
	case gone >= 0 && k.units[i][gone].pinned:
		return fmt.Sprintf("B4: %s is named, though one of its pods must not be evicted.", unitName(i, gone))
	case gone >= 0 && k.serving(1-i) < other.workload():
		return fmt.Sprintf("B4: %s is named before the machine that replaces it serves.", unitName(i, gone))
	case gone < 0 && one.to.workload() < min(z.workload(), k.serving(i)):
		return fmt.Sprintf("B4: %s gives up a machine that serves, and names none.", name(i))
	case promises && (slices.ContainsFunc(k.units[0][:], leaves) || slices.ContainsFunc(k.units[1][:], leaves)):
		return fmt.Sprintf("B4: A machine of %s is promised while another one is leaving.", name(i))
	case promises && k.ready(1-i) < min(int(other.share), other.roomBelowMax()):
		return fmt.Sprintf("B4: A machine of %s is promised before the one that replaces it is ready.", name(i))
	case one.to.replicas > max(z.replicas, z.limit):
		return fmt.Sprintf("B2: %s gets %d replicas, and its max is %d.", name(i), one.to.replicas, z.limit)
	}
	return ""
}

// ready returns how many machines in reserve are ready and stay.
func (k *knownZones) ready(i int) (n int) {
	for s := range k.units[i] {
		if u := &k.units[i][s]; u.there && u.phase == running && u.marked && k.zones[i].names[s] == unnamed {
			n++
		}
	}
	return n
}

// serving returns how many machines of a MachineDeployment serve and stay.
func (k *knownZones) serving(i int) (n int) {
	for s := range k.units[i] {
		if k.units[i][s].serves() && k.zones[i].names[s] == unnamed {
			n++
		}
	}
	return n
}

func leaves(u unit) bool { return u.there && u.phase == terminating }

// roomBelowMax is how many replicas more the MachineDeployment may have.
func (z *zone) roomBelowMax() int { return max(0, int(z.limit)-int(z.replicas)) }

// ownShare is the share without the machine that is created for a move.
func (z *zone) ownShare() int { return max(0, int(z.share)-int(z.move.reserve)) }
