// SPDX-License-Identifier: Apache-2.0

package reason

// Balancer explains the conditions of a Balancer. TargetsResolved has these reasons only if all
// targets can be scaled; otherwise, it has the first reason of [Targets]. While nothing can be
// planned, Balanced, WithinLimits and FallbackActive are Unknown with the reason of Ready.
var Balancer = Conditions{
	"Ready": {
		{Name: "UnderControl", Status: True, Meaning: "The Balancer manages all targets."},
		{Name: "TargetsUnresolved", Status: False, Meaning: "Some targets are not scaled. The other targets share the rest.", Remedy: "see the reasons of these targets"},
		{Name: "Paused", Status: False, Meaning: "`spec.paused` is set. The status shows what the controller would do.", Remedy: "set `spec.paused` to false"},
		{Name: "Invalid", Status: False, Meaning: "The spec is invalid, so no target is scaled.", Remedy: "correct what the message names"},
		{Name: "Conflict", Status: False, Meaning: "An older Balancer has one of the same targets. This Balancer scales nothing, and blocks no other Balancer.",
			Remedy: "remove the target from one of the two"},
	},
	"Balanced": {
		{Name: "AtGoal", Status: True, Meaning: "All targets have the desired replicas."},
		{Name: "Moving", Status: False, Passing: true, Meaning: "Targets change to the desired replicas step by step, as replicas become ready."},
		{Name: "Paused", Status: False, Meaning: "`spec.paused` is set, and some targets do not have the desired replicas.", Remedy: "set `spec.paused` to false"},
	},
	"WithinLimits": {
		{Name: "Room", Status: True, Meaning: "The bounds of the targets fit `spec.replicas`."},
		{Name: "NoRoom", Status: False, Meaning: "All targets are at their maximum, and some replicas have no place.", Remedy: "raise `maxReplicas`, or lower `spec.replicas`"},
		{Name: "BelowMinimums", Status: False, Meaning: "The minimums of the targets exceed `spec.replicas`.", Remedy: "raise `spec.replicas`, or lower `minReplicas`"},
		{Name: "TooFewAndNoRoom", Status: False, Meaning: "The minimums exceed `spec.replicas`, and no target has room for replicas that fail to start elsewhere.",
			Remedy: "raise `maxReplicas`, and see why replicas do not start"},
	},
	"FallbackActive": {
		{Name: "NotNeeded", Status: False, Meaning: "No target is blocked."},
		{Name: "TargetsBlocked", Status: True, Meaning: "Replicas fail to start in some targets, so other targets run more.", Remedy: "see why pods of the blocked targets do not start"},
	},
	"TargetsResolved": {
		{Name: "Resolved", Status: True, Meaning: "All targets exist and can be scaled."},
		{Name: "UnknownNames", Status: False, Meaning: "The policy contains a share for a name that no target has.", Remedy: "add the target, or remove the name"},
		{Name: "NegativeShares", Status: False, Meaning: "The policy contains a negative share, which counts as 0.", Remedy: "use 0"},
		{Name: "ForeignPods", Status: False, Meaning: "`spec.selector` matches pods that belong to no target, and an autoscaler would count them.",
			Remedy: "select by a label that only the pods of targets have"},
		{Name: "SharedPods", Status: False, Meaning: "More than one target selects the same pods, and they count for each.", Remedy: "give the targets different selectors"},
		{Name: "AmbiguousSelector", Status: False, Meaning: "Another HorizontalPodAutoscaler selects some of the same pods as the one of this Balancer, so neither of them works.",
			Remedy: "delete it, or give its workload different pods"},
		{Name: "NoRequests", Status: False, Meaning: "The HorizontalPodAutoscaler of this Balancer needs requests that some pods do not have.", Remedy: "add `resources.requests` to all containers"},
	},
}

// Targets explains why a target of a Balancer is not scaled.
var Targets = Table{
	{Name: "KindNotAllowed", Meaning: "The controller is not allowed to scale this kind.", Remedy: "use another workload, or allow the kind with `--balancer-kinds` and in RBAC"},
	{Name: "NoSuchKind", Meaning: "The cluster does not serve this kind.", Remedy: "correct `apiVersion` and `kind`"},
	{Name: "NotScalable", Meaning: "The kind has no scale subresource.", Remedy: "use another workload"},
	{Name: "NotFound", Meaning: "The workload does not exist. The target keeps its share and gets no replicas of other targets; with a fallback, other targets take over its share after the timeout.",
		Remedy: "create the workload, or remove the target"},
	{Name: "OutOfReach", Meaning: "The workload cannot be read.", Remedy: "allow the controller to list and watch the kind, or see the message"},
	{Name: "LabelsDiffer", Meaning: "`spec.selector` does not match the pods of the target.", Remedy: "give the pod template the labels that `spec.selector` requires"},
	{Name: "NotObservable", Meaning: "The health of the target cannot be observed.", Remedy: "give the workload a selector, or the target `observer: Status`"},
	{Name: "Autoscaled", Meaning: "A HorizontalPodAutoscaler scales the workload, too.", Remedy: "let the autoscaler scale the Balancer instead"},
	{Name: "HasBounds", Meaning: "The MachineDeployment has bounds, so an autoscaler scales it.", Remedy: "remove its annotation `bounds`, or the target"},
	{Name: "KeptEven", Meaning: "The balance controller keeps the MachineDeployment even with other zones, by its annotation or by `--balance-mode`.",
		Remedy: "set its annotation `evenkeel.machine.sapcloud.io/balance` to `Off`, or remove the target"},
	{Name: "WriteRefused", Meaning: "The API server refused to scale the workload. The controller tries again after a minute, with a growing delay.", Remedy: "see the message"},
	{Name: "Blocked", Meaning: "Replicas fail to start. The target is scaled to the replicas that run plus a few more; other targets run the rest.", Remedy: "see why its pods do not start"},
}
