// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
)

// oldest is the first Kubernetes version for which gardenlet grants what an unmodified
// cluster-autoscaler reads: resources of resource.k8s.io/v1.
var oldest = semver.MustParse("1.35.0-0")

func validateAutoscaler(a v1alpha1.Autoscaler, shoot *gardencorev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	switch a {
	case v1alpha1.AutoscalerFork:
		return nil
	case v1alpha1.AutoscalerUpstream:
		return validateUpstream(shoot, path)
	}
	return field.ErrorList{field.Invalid(path, a, "write fork or upstream")}
}

// validateUpstream reports settings of the Shoot that an unmodified cluster-autoscaler cannot follow.
func validateUpstream(shoot *gardencorev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(format string, arguments ...any) {
		errs = append(errs, field.Invalid(path, v1alpha1.AutoscalerUpstream, fmt.Sprintf(format, arguments...)))
	}
	if version, err := semver.NewVersion(shoot.Kubernetes.Version); err == nil && version.LessThan(oldest) {
		refuse("the Shoot has Kubernetes %s, and an unmodified cluster-autoscaler needs 1.35 or later: update the Shoot, or write fork", shoot.Kubernetes.Version)
	}
	for _, w := range shoot.Provider.Workers {
		if w.ClusterAutoscaler != nil {
			refuse("the worker %s has settings under clusterAutoscaler, which only the fork reads: remove them, or write fork", w.Name)
		}
		if err := boundsError(w); err != nil {
			refuse("the worker %s would not be scaled, because its annotation %s cannot be read: correct or remove it, or write fork: %s", w.Name, machine.BoundsAnnotation, err)
		}
	}
	if settings := shoot.Kubernetes.ClusterAutoscaler; settings != nil && slices.Contains(slices.Concat(settings.StartupTaints, settings.IgnoreTaints), machine.ReserveTaintKey) {
		refuse("with %s among startupTaints or ignoreTaints, Nodes in reserve would count as not ready: remove the taint from spec.kubernetes.clusterAutoscaler, or write fork", machine.ReserveTaintKey)
	}
	return errs
}
