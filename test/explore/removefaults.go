// SPDX-License-Identifier: Apache-2.0

package explore

import "cmp"

// callFaults adds what can happen to a call, and to the process.
func (k *removeWalk) callFaults() {
	if c := k.from.call; c.decided && !c.outdated {
		k.addFault("The server writes, and the write is lost.", func(w *RemovalWorld) string { w.call.lost = true; return "" })
		k.addFault("The server writes, and the answer is lost.", func(w *RemovalWorld) string {
			broken := k.landWrite(w)
			w.call.lost = true
			return broken
		})
		k.addFault("The server writes, and the autoscaler gets no answer.", func(w *RemovalWorld) string {
			broken := k.landWrite(w)
			w.record()
			return cmp.Or(broken, w.endCall(false))
		})
	}
	k.addFault("The process is killed, and starts again.", func(w *RemovalWorld) string { w.restart(); return "" })
}

// otherFaults adds what the autoscaler finds, and what others do.
func (k *removeWalk) otherFaults() {
	w := &k.from
	for at := range w.units {
		u := &w.units[at]
		if u.serves() && w.is.named[at] == 0 && !w.unneeded[at] {
			k.addFault("The autoscaler finds that "+unitName(0, at)+" is not needed.", func(w *RemovalWorld) string { w.unneeded[at] = true; return "" })
		}
		if u.there && u.phase == running {
			k.addFault(unitName(0, at)+" fails, and is deleted.", func(w *RemovalWorld) string {
				w.units[at].phase = terminating
				w.excused = w.excused || w.call.decided && int(w.call.machine) == at+1
				return ""
			})
		}
	}
	known := w.newest()
	if instances := w.shownInstances(); w.call.kind == noCall && instances < int(known.replicas) {
		k.addFault("The autoscaler withdraws what does not exist.", func(w *RemovalWorld) string {
			w.call = call{kind: withdrawal, delta: known.replicas - uint8(instances)}
			return ""
		})
	}
	if int(w.is.replicas) < k.Max {
		k.addFault("A user raises replicas.", func(w *RemovalWorld) string {
			to := w.is
			to.replicas++
			w.owed++
			w.change(to)
			return ""
		})
	}
	k.addFault("Something else writes the MachineDeployment.", func(w *RemovalWorld) string { w.change(w.is); return "" })
}
