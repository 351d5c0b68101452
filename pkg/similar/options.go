// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Options define how much templates may differ. Each field except PoolLabels is a flag of
// cluster-autoscaler with the same meaning; set both to the same values.
type Options struct {
	// MemoryRatio is the largest difference in memory capacity, as a fraction of the larger amount:
	// --memory-difference-ratio.
	MemoryRatio float64
	// AllocatableRatio is the same for each allocatable resource: --max-allocatable-difference-ratio.
	AllocatableRatio float64
	// FreeRatio is the same for what DaemonSets leave of each resource: --max-free-difference-ratio.
	FreeRatio float64
	// IgnoredLabels may differ or be absent, in addition to zone and hostname labels:
	// --balancing-ignore-label, repeatable.
	IgnoredLabels []string
	// BalancingLabels, if set, decide alone with the taints: templates are similar if they have all of
	// them, with the same values, and the same taints. Nothing else is compared: --balancing-label,
	// repeatable; not with IgnoredLabels.
	BalancingLabels []string
	// PoolLabels make templates with the same taints similar that have the same value of any of these
	// labels, if it is not empty, whatever else differs. cluster-autoscaler does so on Azure; see
	// [AzurePoolLabels].
	PoolLabels []string
}

// Defaults are cluster-autoscaler's.
func Defaults() Options {
	return Options{MemoryRatio: 0.015, AllocatableRatio: 0.05, FreeRatio: 0.05}
}

// Validate returns what is invalid in the options. Options that it refuses are safe to use, but the
// results are meaningless.
func (o Options) Validate() error {
	var errs []error
	for _, r := range []struct {
		flag  string
		ratio float64
	}{
		{"--memory-difference-ratio", o.MemoryRatio},
		{"--max-allocatable-difference-ratio", o.AllocatableRatio},
		{"--max-free-difference-ratio", o.FreeRatio},
	} {
		// Not the same as r.ratio < 0 || r.ratio > 1: that lets NaN through.
		if !(r.ratio >= 0 && r.ratio <= 1) {
			errs = append(errs, fmt.Errorf("%s is %v: must be from 0 to 1", r.flag, r.ratio))
		}
	}
	if len(o.BalancingLabels) > 0 && len(o.IgnoredLabels) > 0 {
		errs = append(errs, errors.New("--balancing-label and --balancing-ignore-label exclude each other"))
	}
	return errors.Join(errs...)
}

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
