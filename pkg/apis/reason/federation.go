// SPDX-License-Identifier: Apache-2.0

package reason

// Federation explains the conditions of a FederatedHorizontalPodAutoscaler. While nothing can be
// planned, or the object is being deleted, all conditions except Ready and ClustersUnreachable are
// Unknown with the reason of Ready.
var Federation = Conditions{
	"Ready": {
		{Name: "UnderControl", Status: True, Meaning: "The hub manages all selected clusters."},
		{Name: "Paused", Status: False, Meaning: "`spec.paused` is set. The autoscalers in the clusters are not changed.", Remedy: "set `spec.paused` to false"},
		{Name: "Deleting", Status: False, Passing: true, Meaning: "The objects in clusters are being removed. The message names unreachable clusters, which delay this.",
			Remedy: "list clusters that will not return in `spec.unreachable.released`"},
		{Name: "NoClusters", Status: False, Meaning: "No selected cluster can be used.", Remedy: "check `spec.clusterSelector` and `status.clusters`"},
		{Name: "ClustersRefused", Status: False, Meaning: "Some selected clusters cannot be used.", Remedy: "see the reasons of these clusters"},
		{Name: "TooManyClusters", Status: False, Meaning: "More than 256 clusters are selected. The first 256 are used, by tier and name.", Remedy: "narrow `spec.clusterSelector`"},
		{Name: "Conflict", Status: False, Meaning: "An older object scales the same workload, so this one does nothing.", Remedy: "remove one of the two"},
		{Name: "InvalidSelector", Status: False, Meaning: "`spec.clusterSelector` is invalid.", Remedy: "correct it"},
		{Name: "InvalidTemplate", Status: False, Meaning: "The template of the autoscaler or of the workload is invalid.", Remedy: "correct what the message names"},
		{Name: "TooLarge", Status: False, Meaning: "Metrics, behavior, template and selector are larger than 64 KiB in total.", Remedy: "make them smaller"},
		{Name: "ZeroNeedsMetrics", Status: False, Meaning: "`minPolicy: AllowZero` needs a metric of type Object or External, because others cannot be measured without replicas.",
			Remedy: "add such a metric, or use another `minPolicy`"},
	},
	"Balanced": {
		{Name: "AtGoal", Status: True, Meaning: "All clusters have their desired bounds."},
		{Name: "Moving", Status: False, Passing: true, Meaning: "Bounds are being changed in the clusters that the message names."},
	},
	"Limited": {
		{Name: "Enough", Status: False, Meaning: "No cluster requests more replicas than it may have."},
		{Name: "TooFewReplicas", Status: True, Meaning: "Clusters request more replicas than `maxReplicas` and their own limits allow.", Remedy: "raise `maxReplicas`, or the limits of clusters"},
	},
	"ClustersUnreachable": {
		{Name: "AllReached", Status: False, Meaning: "All clusters with a share answer."},
		{Name: "OutOfReach", Status: True, Meaning: "The clusters that the message names do not answer. They keep their bounds.", Remedy: "see the reasons of these clusters"},
	},
	"OverCommitted": {
		{Name: "Within", Status: False, Meaning: "The maximums of the clusters do not add up to more than `maxReplicas`."},
		{Name: "MaximaExceedMaxReplicas", Status: True, Passing: true, Meaning: "The maximums of the clusters may add up to more than `maxReplicas`: the share of an unreachable cluster is lent, or `maxReplicas` was lowered, or an autoscaler was edited."},
	},
	"MinExceeded": {
		{Name: "Within", Status: False, Meaning: "The minimums of the clusters do not add up to more than `minReplicas`."},
		{Name: "MinimaExceedMinReplicas", Status: True, Meaning: "The minimums of the clusters add up to more than `minReplicas`.", Remedy: "raise `minReplicas`, or use another `minPolicy`"},
	},
	"JoiningBlocked": {
		{Name: "NotNeeded", Status: False, Meaning: "No cluster waits for a share."},
		{Name: "NoRoom", Status: True, Meaning: "Other clusters use all of `maxReplicas`, so the clusters that the message names wait.", Remedy: "raise `maxReplicas`"},
	},
	"ReplicasLeft": {
		{Name: "NoneLeft", Status: False, Meaning: "No replicas run without an autoscaler in clusters that have left."},
		{Name: "WithoutAutoscaler", Status: True, Meaning: "The clusters that the message names have left, and replicas run there without an autoscaler. They count against `maxReplicas`.",
			Remedy: "scale the workload there to 0, delete it, or let another autoscaler scale it; or set `spec.leavePolicy`, select the cluster again, or list it in `spec.unreachable.released`"},
	},
}

// Clusters explains the states of clusters in the status of a FederatedHorizontalPodAutoscaler.
// Joining, Leaving and Idle need no explanation; Frozen has the reason of the cluster's autoscaler.
var Clusters = Table{
	{Name: "Stuck", Status: "Used", Meaning: "Requested replicas do not become ready.", Remedy: "see why pods do not become ready there"},
	{Name: "NoWorkload", Status: "Used", Meaning: "The workload does not exist there. After `rebalance.startTimeoutSeconds`, other clusters get its share if they need it.",
		Remedy: "deploy the workload there, or use `placement`"},
	{Name: "WorkloadRefused", Status: "Used", Meaning: "The cluster refused to create, change, scale or remove the workload. While the cluster leaves, its state is Leaving or Idle instead.", Remedy: "see the message"},
	{Name: "ReplicasLeft", Status: "Left", Meaning: "The cluster has left, and replicas run there without an autoscaler. They count against `maxReplicas`.", Remedy: "see the condition ReplicasLeft"},
	{Name: "NoRoom", Status: "Waiting", Meaning: "Other clusters use all of `maxReplicas`.", Remedy: "raise `maxReplicas`"},
	{Name: "NameTaken", Status: "Refused", Meaning: "Another client created the autoscaler there.", Remedy: "remove it, or set `spec.adopt`"},
	{Name: "AutoscaledTwice", Status: "Refused", Meaning: "Another autoscaler there scales the same workload, and the two disable each other.", Remedy: "remove the other one"},
	{Name: "AutoscalerUnreadable", Status: "Refused", Meaning: "The autoscaler there cannot be read.", Remedy: "see the message"},
	{Name: "ListRefused", Status: "Refused", Meaning: "The hub cannot list the kind there.", Remedy: "allow its account to list and watch the kind"},
	{Name: "TooManyKinds", Status: "Refused", Meaning: "Objects scale more kinds there than the hub watches in one cluster.", Remedy: "remove objects that scale other kinds"},
	{Name: "NoSuchKind", Status: "Refused", Meaning: "The cluster does not have the kind of the workload.", Remedy: "correct `scaleTargetRef`, or install the kind there"},
	{Name: "SameCluster", Status: "Refused", Meaning: "The cluster is registered under another name, too, or might be: the hub has not read the other one yet, or it is no longer registered. The hub writes under one of the names only, and the share counts there.", Remedy: "deselect one of the names, and remove it from the registry; list a name that is gone in `spec.unreachable.released`"},
	{Name: "RefusedInvalid", Status: "Refused", Meaning: "The cluster rejects the autoscaler. Other reasons of its API server appear in the same way, for example `RefusedForbidden`. The hub tries again after a minute, with a growing delay, and at once when the object changes.",
		Remedy: "see the message"},
	{Name: "NoContact", Status: "Unreachable", Meaning: "The cluster does not answer.", Remedy: "check its API server, and the network to it"},
	{Name: "NotRegistered", Status: "Unreachable", Meaning: "The hub no longer knows the cluster. Its share is kept.", Remedy: "register it again, or list it in `spec.unreachable.released`"},
	{Name: "KubeconfigInvalid", Status: "Unreachable", Meaning: "The kubeconfig of the cluster cannot be used.", Remedy: "correct the Secret as the message describes"},
	{Name: "TooManyClusters", Status: "Unreachable", Meaning: "The hub watches no more clusters than `--federation-max-clusters` allows.", Remedy: "raise `--federation-max-clusters`"},
	{Name: "TooManyObjects", Status: "Unreachable", Meaning: "The cluster has more autoscalers and workloads than the hub reads from one cluster.", Remedy: "remove objects there, and then replace its kubeconfig"},
	{Name: "NoAccess", Status: "Unreachable", Meaning: "The hub has no kubeconfig and no configured access provider for the ClusterProfile.", Remedy: "add a Secret with a kubeconfig, or an access provider to `--clusterprofile-provider-file`"},
	{Name: "AccessInvalid", Status: "Unreachable", Meaning: "The hub cannot use the access providers in the status of the ClusterProfile.", Remedy: "see the message"},
}
