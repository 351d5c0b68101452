// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// IsCrowdedOut reports whether pods of the same or a higher priority keep a pod from the node that
// it is nominated for: those that run there, and those that are nominated for it and more
// important. Pods of a lower priority may be there, since preemption removes them, unless the pod
// never preempts others. What the pods of this node alone do not decide is left to the scheduler,
// which sees all nodes. If the node is full and also refuses the pod for another reason, the pod is
// crowded out: its nomination is of no use, and without it the pod gets a machine. The parameter
// nominated contains the pods that are nominated for any node, and read returns a pod as package fit
// reads it.
func IsCrowdedOut(pod *corev1.Pod, node *corev1.Node, running, nominated []*corev1.Pod, read func(*corev1.Pod) *fit.Pod) bool {
	var staying []*fit.Pod
	for _, p := range running {
		if !pool.Finished(p) && p.DeletionTimestamp == nil && (priority(p) >= priority(pod) || neverPreempts(pod)) {
			staying = append(staying, read(p))
		}
	}
	room := fit.NewRoom([]fit.Node{{Object: node, Pods: staying}})
	for _, p := range nominatedBefore(pod, nominated) {
		if other := read(p); room.Ask(other, node.Name) == fit.Fits {
			room.Put(other, node.Name)
		}
	}
	p := read(pod)
	obstacle, alone := room.Ask(p, node.Name), fit.NewRoom([]fit.Node{{Object: node}}).Ask(p, node.Name)
	return isOfOthers(obstacle) && obstacle != alone
}

// neverPreempts reports whether the scheduler removes no pod for this one, and leaves the nomination
// of this one as it is.
func neverPreempts(pod *corev1.Pod) bool {
	return ptr.Deref(pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority) == corev1.PreemptNever
}

// isOfOthers reports whether an obstacle is due to the pods on a node, whatever runs elsewhere.
// Topology spread depends on the pods of all nodes.
func isOfOthers(o fit.Obstacle) bool {
	return o == fit.Full || o == fit.PortTaken || o == fit.Repelled
}

// nominatedBefore returns the more important pods that are nominated for the same node.
func nominatedBefore(pod *corev1.Pod, nominated []*corev1.Pod) []*corev1.Pod {
	var before []*corev1.Pod
	for _, p := range nominated {
		if p.Status.NominatedNodeName == pod.Status.NominatedNodeName && byImportance(p, pod) < 0 {
			before = append(before, p)
		}
	}
	slices.SortFunc(before, byImportance)
	return before
}

// claimMemory is how long a claim is remembered after its record has been seen.
const claimMemory = time.Minute

// Claimed are the claims of MachineDeployments, by UID. The record of a claim ends when its machine
// has left the reserve, but each kind is watched on its own: the end of the record may be seen
// before the machine is. Meanwhile, the machine must not be claimed for another pod.
type Claimed map[types.UID]claim

type claim struct {
	v1alpha1.Claims
	seen time.Time
}

// Record remembers the claims that a MachineDeployment has now, and forgets old ones.
func (c Claimed) Record(d *v1alpha1.MachineDeployment, now time.Time) {
	for uid, claim := range c {
		if now.Sub(claim.seen) > claimMemory {
			delete(c, uid)
		}
	}
	if claims := pool.ClaimsOf(d); len(claims.Machines) > 0 {
		c[d.UID] = claim{claims, now}
	}
}

// Complete marks the machines of a MachineDeployment that are claimed as far as is known, and
// forgets those that have left the reserve.
func (c Claimed) Complete(d *v1alpha1.MachineDeployment, v reserve.View) {
	claims, known := c[d.UID]
	if !known {
		return
	}
	var left []string
	for i, m := range v.Machines {
		if m.Reserve && slices.Contains(claims.Machines, m.Name) {
			left = append(left, m.Name)
			v.Machines[i].Claimed = m.Claimed || claims.Has(m.Name, v.Replicas)
		}
	}
	claims.Machines = left
	c[d.UID] = claims
}
