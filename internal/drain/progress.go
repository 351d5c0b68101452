// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Progress is the progress of each MachineDeployment.
type Progress []Pool

// Pool is one MachineDeployment.
type Pool struct {
	Namespace, Name string
	// Told reports whether it has the annotation to have no reserve.
	Told bool
	// Applied is the applied excess, Marked the number of machines with the reserve mark, including
	// leaving ones, and There the number of all machines.
	Applied, Marked, There int
	// Replicas is the number of machines for workload.
	Replicas int
	// Reason and Message are those of the condition ReserveReady.
	Reason, Message string
	// Ready reports whether the condition is True, or absent because nothing requests a reserve.
	Ready bool
}

func poolOf(d *machine.MachineDeployment, marked, there int) Pool {
	p := Pool{
		Namespace: d.Namespace, Name: d.Name, Told: pool.Drained(d),
		Applied: pool.AppliedOf(d, d.Spec.Replicas).Excess, Marked: marked, There: there, Replicas: int(pool.Requested(d)), Ready: !isRequested(d),
	}
	for _, c := range d.Status.Conditions {
		if c.Type == machine.ReserveReady {
			p.Reason, p.Message, p.Ready = c.Reason, c.Message, c.Status == "True"
		}
	}
	return p
}

// isRequested reports whether anything requests a reserve, or may request one: the controller has
// then a condition to write. How many machines an amount of resources is does not matter.
func isRequested(d *machine.MachineDeployment) bool {
	wishes, err := pool.WishesOf(d)
	if err != nil {
		return true
	}
	each := corev1.ResourceList{}
	if wishes.Bounds != nil && wishes.Bounds.Excess != nil {
		for _, amount := range wishes.Bounds.Excess.Resources {
			each[amount.Name] = resource.MustParse("1")
		}
	}
	wanted, err := reserve.Effective(wishes, int(pool.Requested(d)), each)
	return err != nil || wanted.Wish > 0
}

// Machines returns the machines in reserve.
func (p Progress) Machines() (sum int) {
	for _, pool := range p {
		sum += pool.Marked
	}
	return sum
}

// Drained returns the MachineDeployments that have the annotation to have no reserve.
func (p Progress) Drained() (told Progress) {
	for _, pool := range p {
		if pool.Told {
			told = append(told, pool)
		}
	}
	return told
}

// isDone reports whether no reserve is left: no excess is applied, no machine has a mark, and those
// that had one are gone. With undo, it reports whether the reserve is back.
func (p Pool) isDone(undo bool) bool {
	if undo {
		return !p.Told && p.Ready
	}
	return p.Told && p.Applied == 0 && p.Marked == 0 && p.There <= p.Replicas
}

// Done reports whether all pools are done.
func (p Progress) Done(undo bool) bool { return p.Pending(undo) == "" }

// Pending names the pools that are not done, with the reasons.
func (p Progress) Pending(undo bool) string {
	var names []string
	for _, pool := range p {
		if !pool.isDone(undo) {
			names = append(names, pool.describe(undo))
		}
	}
	return strings.Join(names, "; ")
}

// Changes returns a line for each pool that has changed since the last progress.
func (p Progress) Changes(last Progress, undo bool) []string {
	before := map[string]string{}
	for _, pool := range last {
		before[pool.key()] = pool.describe(undo)
	}
	var lines []string
	for _, pool := range p {
		if line := pool.describe(undo); before[pool.key()] != line {
			lines = append(lines, line)
		}
	}
	return lines
}

func (p Pool) key() string { return p.Namespace + "/" + p.Name }

func (p Pool) describe(undo bool) string {
	switch {
	case p.isDone(undo):
		return p.key() + ": done"
	case p.Told == undo: // created later, or changed by another client
		return p.String() + "; its annotation drain-reserve is not as this command writes it: run the command again"
	}
	return p.String()
}

// String describes the state of the pool.
func (p Pool) String() string {
	text := fmt.Sprintf("%s: applied excess %d, machines in reserve %d, machines in total %d, replicas %d", p.key(), p.Applied, p.Marked, p.There, p.Replicas)
	if p.Reason != "" {
		text += " (" + p.Reason + ": " + p.Message + ")"
	}
	return text
}
