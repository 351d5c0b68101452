// SPDX-License-Identifier: Apache-2.0

package world

import (
	"strconv"
	"strings"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Requested returns how many machines clients request for the workload of a MachineDeployment:
// replicas without the reserve machines that they include. It reads the annotations itself, and not
// with the code that storms test.
func Requested(d *v1alpha1.MachineDeployment) int {
	record := map[string]int{}
	for field := range strings.SplitSeq(d.Annotations[v1alpha1.AppliedExcessAnnotation], ",") {
		key, digits, _ := strings.Cut(field, "=")
		record[key], _ = strconv.Atoi(digits) // the first field has no key
	}
	replicas := int(d.Spec.Replicas)
	// The reserve takes what replicas were lowered by since the record was written, as far as it can.
	lowered := max(0, record["replicas"]-max(0, replicas))
	return replicas - max(0, record["counted"]-lowered)
}

// Workload returns how many machines of those that are requested may be created now: fewer while
// growth is still to be split over zones.
func Workload(d *v1alpha1.MachineDeployment) int {
	applied, err := strconv.Atoi(d.Annotations[v1alpha1.AppliedReplicasAnnotation])
	if err != nil {
		return Requested(d)
	}
	return min(applied, Requested(d))
}
