// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// counts reports whether a label must be the same.
func (o Options) counts(label string) bool {
	return !passing(label) && !slices.Contains(o.IgnoredLabels, label)
}

// passing reports whether a label only describes where a machine is, which machine it is, or what
// is being done to it. Other labels describe what the machine is like.
func passing(label string) bool {
	switch label {
	case corev1.LabelHostname,
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
		corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
		"ibm-cloud.kubernetes.io/zone", "ibm-cloud.kubernetes.io/region",
		"alpha.eksctl.io/instance-id",
		"node.gardener.cloud/machine-name",
		// Differs while a pool is being updated.
		"worker.gardener.cloud/kubernetes-version",
		"beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup",
		// Copies of the stable labels, which not every Node has.
		"beta.kubernetes.io/arch", "beta.kubernetes.io/os", corev1.LabelInstanceType:
		return true
	}
	domain, name, _ := strings.Cut(label, "/")
	// machine-controller-manager uses the first one to record which Nodes an in-place update has
	// reached. Volume drivers use the second one for their zones, each in its own domain:
	// topology.ebs.csi.aws.com/zone.
	return domain == "node.machine.sapcloud.io" || strings.HasPrefix(domain, "topology.") && placeNames(name)
}

func placeNames(name string) bool {
	switch name {
	case "zone", "region", "zone-id", "k8s-zone", "k8s-region", "hostname", "node":
		return true
	}
	return false
}

// AWSLabels are ignored by cluster-autoscaler on AWS, in addition to zone and hostname.
func AWSLabels() []string {
	return []string{
		"alpha.eksctl.io/instance-id",
		"alpha.eksctl.io/nodegroup-name",
		"eks.amazonaws.com/nodegroup",
		"k8s.amazonaws.com/eniConfig",
		"lifecycle",
		"topology.ebs.csi.aws.com/zone",
		"topology.k8s.aws/zone-id",
	}
}

// AzureLabels are ignored by cluster-autoscaler on Azure, in addition to zone and hostname.
func AzureLabels() []string {
	return append(AzurePoolLabels(),
		"aksEngineVersion",
		"creationSource",
		"kubernetes.azure.com/consolidated-additional-properties",
		"kubernetes.azure.com/node-image-version",
		"poolName",
		"resourceNameSuffix",
		"topology.disk.csi.azure.com/zone",
	)
}

// AzurePoolLabels are the [Options.PoolLabels] of cluster-autoscaler on Azure.
func AzurePoolLabels() []string {
	return []string{"agentpool", "kubernetes.azure.com/agentpool"}
}
