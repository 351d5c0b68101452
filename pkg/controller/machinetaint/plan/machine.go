// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// writable reports whether the machine may be written: not before it has its provider id, and not
// while it is leaving.
func (m Machine) writable() bool {
	return m.Object.Spec.ProviderID != "" && m.Object.DeletionTimestamp == nil && m.Object.Status.CurrentStatus.Phase != mcm.MachineTerminating
}

// booting reports whether the machine is still becoming ready.
func (m Machine) booting() bool { return !m.Ready() && !pool.Unhealthy(m.Phase()) }

// markDiffers reports whether the mark holds the machine with other taints than the settings
// define.
func (m Machine) markDiffers(s Settings) bool {
	mark, err := v1alpha1.ParseReserve(m.Object.Annotations[v1alpha1.ReserveAnnotation])
	if err != nil {
		return true
	}
	// Taints that the template has by itself are not in the mark.
	for _, taint := range s.Taints() {
		if !slices.ContainsFunc(m.Object.Spec.NodeTemplateSpec.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			return true
		}
	}
	for _, taint := range mark.Taints {
		if taint.Key == v1alpha1.ReserveTaintKey && !slices.Contains(s.Effects, taint.Effect) {
			return true
		}
	}
	return false
}

// ruleMachine returns the machine as the reserve rule sees it.
func (m Machine) ruleMachine(returned map[string]bool) reserve.Machine {
	one := reserve.MachineOf(m.Machine)
	one.SeenPriority, one.Returned, one.Doubtful, one.Open = m.SeenPriority, returned[one.Name], m.Doubtful, one.Open || m.Opened
	return one
}

// Returned returns the names of the machines for which replicas were restored.
func Returned(d *v1alpha1.MachineDeployment) map[string]bool {
	names := map[string]bool{}
	for name := range strings.SplitSeq(d.Annotations[v1alpha1.ReturnedAnnotation], ",") {
		if name != "" {
			names[name] = true
		}
	}
	return names
}

// freezeMargin returns how many machines beyond its replicas a MachineDeployment may have before
// machine-controller-manager freezes it; 0 if it does not freeze it.
func freezeMargin(v View) int {
	strategy := v.Deployment.Spec.Strategy
	var surge *intstr.IntOrString
	switch {
	case strategy.RollingUpdate != nil:
		surge = strategy.RollingUpdate.MaxSurge
	case strategy.InPlaceUpdate != nil:
		surge = strategy.InPlaceUpdate.MaxSurge
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(surge, v.Memory.Visible(v.Deployment), true)
	if err != nil { // also without a surge
		return 0
	}
	return n + v.Settings.SafetyUp
}

func countText(n *int32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// mostMachines returns how many machines the MachineSets may be asking for, without those that are
// not created because max leaves no room for them (I1). The guard of creations refuses these, except
// in rollouts and where workload exceeds max. Beyond max, it may let a machine of workload be created
// beside each one that leaves.
func mostMachines(v View) int {
	wishes, _ := pool.WishesOf(v.Deployment) // bounds limit whatever other annotations say
	if wishes.Bounds == nil || v.Rollout || v.Memory.Workload(v.Deployment) > int(wishes.Bounds.Max) {
		return v.MaxSetReplicas
	}
	limit := int(wishes.Bounds.Max)
	for _, m := range v.Machines {
		if m.Leaving() {
			limit++
		}
	}
	return min(v.MaxSetReplicas, limit)
}
