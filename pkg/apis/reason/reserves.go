// SPDX-License-Identifier: Apache-2.0

package reason

// Reasons of the condition Ready of a Reserve, beside those that it has in common with ReserveReady.
const (
	NotRequested   = "NotRequested"
	Suspended      = "Suspended"
	Hibernated     = "Hibernated"
	NoPools        = "NoPools"
	NoRoom         = "NoRoom"
	MaximumUnknown = "MaximumUnknown"
	PoolsDrained   = "PoolsDrained"
	Invalid        = "Invalid"
)

// Reserve explains the conditions of a Reserve.
var Reserve = Conditions{"Ready": {
	{Name: Complete, Status: True, Event: Complete, Meaning: "All desired machines are ready."},
	{Name: Growing, Status: False, Passing: true, Meaning: "Machines are being created.",
		Remedy: "see the condition ReserveReady of the MachineDeployments in `status.pools`"},
	{Name: NotRequested, Status: True, Meaning: "No machines are desired now: `spec.replicas` and `spec.amount` result in 0 machines, and no schedule is active."},
	{Name: Suspended, Status: True, Event: Suspended, Meaning: "`spec.suspend` is true, so no machines are requested."},
	{Name: Hibernated, Status: True, Meaning: "The cluster is hibernated and has no reserve."},
	{Name: NoRoom, Status: False, Event: NoRoom, Meaning: "Bounds leave no room for all machines.", Remedy: "raise max in the bounds, select more MachineDeployments, or request less"},
	{Name: CannotBeMade, Status: False, Event: CannotBeMade, Meaning: "Machines cannot be created in some MachineDeployments, and the others have no room for them or have not created them yet.",
		Remedy: "see the condition ReserveReady of the MachineDeployments that the message names"},
	{Name: NoPools, Status: False, Event: NoPools, Meaning: "`spec.pools` selects no MachineDeployment in the namespace of the Reserve.", Remedy: "correct names, labels or worker pools"},
	{Name: MaximumUnknown, Status: False, Event: MaximumUnknown, Meaning: "The maximum of a MachineDeployment that Gardener created is unknown, so it gets no machines.",
		Remedy: "set the annotation `evenkeel.machine.sapcloud.io/bounds`; see docs/gardener.md"},
	{Name: PoolsDrained, Status: False, Meaning: "The annotation `drain-reserve` removes the reserve of some MachineDeployments, and the others have no room for its machines.",
		Remedy: "remove the annotation"},
	{Name: CapacityUnknown, Status: False, Event: CapacityUnknown, Meaning: "An amount is given in resources, but the capacity of a machine is unknown. The Reserve requests what it requested before.",
		Remedy: "give the MachineClass a nodeTemplate with that capacity, wait for a ready Node, or request a resource that the Nodes offer"},
	{Name: Invalid, Status: False, Event: Invalid, Meaning: "An amount, a schedule or the selector is invalid, and the Reserve requests what it requested before. Or the annotation `dedicated` is invalid, or `spec.pools` selects several MachineDeployments, and the machines are dedicated to nobody.",
		Remedy: "correct the field or the annotation in the message"},
}}
