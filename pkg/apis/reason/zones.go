// SPDX-License-Identifier: Apache-2.0

package reason

// ZonesBalanced explains the condition of that name.
var ZonesBalanced = Table{
	{Name: "Even", Status: True, Meaning: "Replicas are as even as the mode allows."},
	{Name: "Moving", Status: False, Passing: true, Meaning: "Replicas are being moved."},
	{Name: "Waiting", Status: False, Passing: true, Meaning: "Another operation, which the message names, must end before the next machine moves."},
	{Name: "NoRoom", Status: False, Meaning: "No similar MachineDeployment has room for the growth.", Remedy: "raise max in the bounds of the others, or see why their machines fail"},
	{Name: "NodesNotReady", Status: False, Meaning: "Too many Nodes of this MachineDeployment are not ready. Other zones get its growth, except for one machine at a time as a trial.", Remedy: "see why the Nodes are not ready: kubectl get nodes"},
	{Name: "PodsBound", Status: False, Meaning: "Pods on the machines cannot run in the other zone.", Remedy: "check node selectors, affinity and zonal volumes of the pods that the message names"},
	{Name: "PodDisruptionBudget", Status: False, Meaning: "A PodDisruptionBudget allows no eviction now, or a pod has two of them, or they cannot be read.",
		Remedy: "raise maxUnavailable of the budget, or the replicas of its pods; if a pod has two budgets, remove one; if the condition RightsGranted names poddisruptionbudgets, grant the right"},
	{Name: "NotSafeToEvict", Status: False, Meaning: "Pods are annotated as not safe to evict.", Remedy: "remove the annotation cluster-autoscaler.kubernetes.io/safe-to-evict, or delete the pods"},
	{Name: "NotReplicated", Status: False, Meaning: "Pods have no controller, or one that may not recreate them.", Remedy: "annotate the pods with cluster-autoscaler.kubernetes.io/safe-to-evict=true, give them a controller, or delete them"},
	{Name: "SystemPod", Status: False, Meaning: "Pods of kube-system are younger than 1 hour and have no PodDisruptionBudget.", Remedy: "wait, or give the pods a PodDisruptionBudget"},
	{Name: "LocalStorage", Status: False, Meaning: "Pods would lose their data in an emptyDir or a hostPath.",
		Remedy: "list the volumes in the annotation cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes of the pods, or delete the pods"},
	{Name: "ClusterUnreachable", Status: False, Meaning: "The target cluster does not answer, so its pods are unknown. Growth stays where it was requested, and no machine moves.",
		Remedy: "check the API server of the target cluster, the network to it and the kubeconfig"},
	{Name: "Frozen", Status: False, Meaning: "machine-controller-manager has frozen the MachineDeployment, so replicas stay where they were requested.",
		Remedy: "see the log of machine-controller-manager: too many machines, or an API server that does not answer"},
	{Name: "Paused", Status: False, Meaning: "The MachineDeployment is paused during a rollout, or before it has a MachineSet, so replicas stay where they were requested.", Remedy: "set `spec.paused` to false"},
	{Name: "Invalid", Status: False, Meaning: "The annotation `balance` is invalid. Replicas are not changed.", Remedy: "use a value from the message"},
	{Name: "NoMachineEligible", Status: False, Meaning: "All machines are preserved, or not ready.", Remedy: "end the preservation, or repair the machines: kubectl -n NAMESPACE get machines"},
}

// RightsGranted explains the condition of that name.
var RightsGranted = Table{
	{Name: "Forbidden", Status: False, Meaning: "Evenkeel lacks rights and works without them. For each right, the message describes what does not work and which rule to add. Evenkeel notices a granted right within 10 minutes.",
		Remedy: "add the rules in the message to a Role, or accept the limitation"},
}

// PoolExcessSpread explains the condition of that name.
var PoolExcessSpread = Table{
	{Name: "Spread", Status: True, Meaning: "The shares add up to the excess."},
	{Name: "FailedOver", Status: True, Meaning: "The shares add up to the excess, but a zone fails, and other zones hold its share in the meantime."},
	{Name: "Hibernated", Status: True, Meaning: "The cluster is hibernated and has no reserve."},
	{Name: "NoRoom", Status: False, Meaning: "The bounds leave no room for the whole excess.", Remedy: "raise max in the bounds, or lower the excess"},
	{Name: "MaximumUnknown", Status: False, Meaning: "Gardener created this MachineDeployment, and Evenkeel cannot read its maximum, so it has no reserve.",
		Remedy: "set the worker annotation `evenkeel.machine.sapcloud.io/bounds` to minimum, maximum and excess of the pool, or grant the right that the condition RightsGranted names"},
	{Name: "ExcessUnknown", Status: False, Meaning: "The excess cannot be converted from resources to machines, or all its values are invalid. Shares stay as they are.",
		Remedy: "give the MachineClass a nodeTemplate with that capacity, request a resource that the Nodes offer, or correct the value in the message"},
	{Name: "Invalid", Status: False, Meaning: "The annotation `bounds` or `excess` is invalid.", Remedy: "use the syntax in the message"},
}
