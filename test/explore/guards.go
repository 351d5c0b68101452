// SPDX-License-Identifier: Apache-2.0

package explore

import "cmp"

// Guard is a promise of a controller that a search can break, to show that it is necessary.
type Guard int

// Promises, of the controller of MachineDeployments first.
const (
	None Guard = iota
	// GuardVersion limits writes to the version that they were decided on.
	GuardVersion
	// ConfirmUnchanged reads a MachineDeployment and its MachineSets before machines are created or
	// deleted.
	ConfirmUnchanged
	// ListPods lists the pods of a machine before it enters the reserve, or leaves it to be deleted.
	ListPods
	// ExcludeReleases deletes no machine while its Node is being opened, and writes a machine before its
	// Node if that is being deleted.
	ExcludeReleases
	// KeepAnswers decides on answers to own writes until the stores show as much.
	KeepAnswers
	// RepeatNames creates a machine again with the same name if there was no answer.
	RepeatNames
	// RepairNodes gives Nodes the marks of their Machines.
	RepairNodes
	// KeepUnparsed keeps the reserve while its settings cannot be parsed.
	KeepUnparsed
	// KeepBlocked remembers, in the status of a Reserve, where machines cannot be created.
	KeepBlocked
	// CountFromLoop counts what an autoscaler asks for from the replicas when its loop began.
	CountFromLoop
	// KeepLoop ends the loop of an autoscaler when the process restarts, which forgets those.
	KeepLoop
	// RecordTaken records what a MachineDeployment takes in the write that gives it the replicas.
	RecordTaken
	// RecordDeclined records that a MachineDeployment takes nothing, before another one keeps it.
	RecordDeclined
	// ReadPods reads which pods must not be evicted before a machine moves.
	ReadPods
	// ReadReadiness waits until machines are ready before others go.
	ReadReadiness
	// ReadMachines reads a machine from the API server before it is removed.
	ReadMachines
	// DecideAgain decides again about a write that was lost.
	DecideAgain
	// RemindNames repeats the deletion of named machines.
	RemindNames
	// TogetherOnly releases machines for the pods of a group together.
	TogetherOnly
)

// direction is how a number changes.
type direction uint8

const (
	unturned direction = iota
	raised
	lowered
)

func directionOf(from, to uint8) direction {
	switch {
	case to > from:
		return raised
	case to < from:
		return lowered
	}
	return unturned
}

// turnsBack records another direction, and reports whether it is the opposite of the one before.
func (d *direction) turnsBack(next direction) bool {
	before := *d
	*d = cmp.Or(next, before)
	return before != unturned && before != *d
}

func (d direction) String() string { return [...]string{"unturned", "raised", "lowered"}[d] }
