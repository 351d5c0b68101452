// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

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
