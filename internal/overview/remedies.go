// SPDX-License-Identifier: Apache-2.0

package overview

// remedy is what to do about a reserve that is not ready, by the reason of its condition.
type remedy struct {
	// passing reasons end by themselves: they are worth a word only when they last.
	passing bool
	do      string
}

// remedies are by reason; docs/reserve.md has the same ones.
var remedies = map[string]remedy{
	"AboveMax":           {do: "raise max in the bounds, or lower replicas"},
	"AnnotationInvalid":  {do: "write what the condition says, or remove the annotation"},
	"BoundsInvalid":      {do: "write bounds as min:max:excess, for example 1:10:2"},
	"CannotBeMade":       {do: "see to quota, capacity and the MachineClass: kubectl -n %s describe machine"},
	"CapacityUnknown":    {do: "give the MachineClass a nodeTemplate with that capacity"},
	"ClusterUnreachable": {passing: true, do: "see to the API server of the target cluster and the way to it"},
	"Crowded":            {passing: true, do: "see which machines hang: kubectl -n %s get machines"},
	"Draining":           {passing: true, do: "wait, or end --drain-reserve"},
	"Growing":            {passing: true, do: "see what keeps machines from booting: kubectl -n %s describe machine"},
	"Kept":               {do: "end the preservation of machines, or remove their priority"},
	"NamedInReserve":     {passing: true, do: "look who names machines in reserve for deletion: docs/autoscaler.md"},
	"NotReady":           {passing: true, do: "see what keeps machines from booting: kubectl -n %s describe machine"},
	"NotWanted":          {passing: true, do: "see which machines hang: kubectl -n %s get machines"},
	"Outranked":          {do: "take priority 1 off the machine that serves, or lower replicas for it"},
	"Overstaying":        {passing: true, do: "raise replicas to keep them all, or wait for the emptiest to be drained whose pods may be evicted"},
	"Refilling":          {passing: true, do: "see what keeps machines from booting: kubectl -n %s describe machine"},
	"RollingOut":         {passing: true, do: "see what keeps the rollout: kubectl -n %s describe machinedeployment %s"},
	"Shrinking":          {passing: true, do: "see which machines hang: kubectl -n %s get machines"},
	"Unhealthy":          {do: "see to machines that are Unknown or Failed: kubectl -n %s get machines"},
}
