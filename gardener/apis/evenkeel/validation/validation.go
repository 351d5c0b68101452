// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/reserve"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
)

// maxErrors is how many errors are enough: a configuration can have a million bytes of wrong pools.
const maxErrors = 20

// Validate returns what is wrong with a configuration of a Shoot.
func Validate(c *v1alpha1.EvenkeelConfig, shoot *gardencorev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	workers := shoot.Provider.Workers
	var errs field.ErrorList
	if _, err := machine.ParseAccounting(string(c.Accounting)); err != nil {
		errs = append(errs, field.Invalid(path.Child("accounting"), c.Accounting, err.Error()))
	}
	errs = append(errs, validateAutoscaler(c.Autoscaler, shoot, path.Child("autoscaler"))...)
	bounded := c.Autoscaler == v1alpha1.AutoscalerUpstream || slices.ContainsFunc(c.Pools, hasBounds) || slices.ContainsFunc(workers, isAnnotated)
	if c.CapacityBuffers && !bounded {
		errs = append(errs, field.Invalid(path.Child("capacityBuffers"), true, "no pool holds chunks: write excess for a pool, 0 if it keeps nothing else in reserve"))
	}
	seen := map[string]bool{}
	for i, p := range c.Pools {
		if len(errs) >= maxErrors {
			break
		}
		at := path.Child("pools").Index(i)
		if seen[p.Name] {
			errs = append(errs, field.Invalid(at.Child("name"), p.Name, "the pool is configured twice: write each pool once"))
			continue
		}
		seen[p.Name] = true
		errs = append(errs, validatePool(p, workers, at)...)
	}
	return errs
}

// hasBounds reports whether the machines of a pool get bounds, without which they hold no chunks.
func hasBounds(p v1alpha1.Pool) bool { return p.Excess != nil || p.Bounds != "" }

// isAnnotated reports whether the machines of a worker get bounds from its own annotations.
func isAnnotated(w gardencorev1beta1.Worker) bool {
	bounds, excess := w.Annotations[machine.BoundsAnnotation], w.Annotations[machine.PoolExcessAnnotation]
	return boundsError(w) == nil && (bounds != "" || excess != "")
}

// boundsError returns why the bounds in an annotation of a worker cannot be read; nil without it.
// Such a worker has no bounds at all.
func boundsError(w gardencorev1beta1.Worker) error {
	text, set := w.Annotations[machine.BoundsAnnotation]
	if !set {
		return nil
	}
	_, err := machine.ParseBounds(text)
	return err
}

func validatePool(p v1alpha1.Pool, workers []gardencorev1beta1.Worker, path *field.Path) field.ErrorList {
	w, err := workerOf(p.Name, workers)
	if err != "" {
		return field.ErrorList{field.Invalid(path.Child("name"), p.Name, err)}
	}
	var errs field.ErrorList
	if p.Balance != "" {
		if _, err := machine.ParseBalanceMode(string(p.Balance)); err != nil {
			errs = append(errs, field.Invalid(path.Child("balance"), p.Balance, err.Error()))
		}
	}
	switch {
	case p.Excess != nil && p.Bounds != "":
		errs = append(errs, field.Invalid(path, p.Name, "excess and bounds are both set: write excess, or bounds if the pool must stay within less than the worker's minimum and maximum"))
	case p.Excess != nil:
		errs = append(errs, validateExcess(p.Excess.String(), w, path.Child("excess"))...)
	case p.Bounds != "":
		errs = append(errs, validateBounds(p.Bounds, w, path.Child("bounds"))...)
	case p.Balance == "":
		errs = append(errs, field.Required(path.Child("excess"), "the pool requests nothing: write excess, for example 2 or 10%, or remove the pool"))
	}
	return append(errs, validateAnnotations(p, w, path)...)
}

func workerOf(name string, workers []gardencorev1beta1.Worker) (*gardencorev1beta1.Worker, string) {
	var names []string
	for i := range workers {
		if workers[i].Name == name {
			return &workers[i], ""
		}
		names = append(names, workers[i].Name)
	}
	if len(names) == 0 {
		return nil, "the Shoot has no workers: remove the pool"
	}
	return nil, "the Shoot has no such worker: write one of " + strings.Join(names, ", ")
}

func validateExcess(text string, w *gardencorev1beta1.Worker, path *field.Path) field.ErrorList {
	excess, err := machine.ParseExcess(text)
	if err != nil {
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	}
	b := machine.Bounds{Min: w.Minimum, Max: w.Maximum, Excess: &excess}
	if _, err := machine.ParseBounds(b.String()); err != nil { // together, they may be too long for the annotation
		return field.ErrorList{field.Invalid(path, text, "with minimum and maximum of the worker: "+err.Error())}
	}
	return validateRoom(b, text, "of the worker", path)
}

func validateBounds(text string, w *gardencorev1beta1.Worker, path *field.Path) field.ErrorList {
	b, err := machine.ParseBounds(text)
	example := fmt.Sprintf("for example %d:%d:1", w.Minimum, w.Maximum)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	case b.Excess == nil:
		return field.ErrorList{field.Invalid(path, text, "the excess is missing: write minimum, maximum and excess, "+example)}
	case b.Min < w.Minimum || b.Max > w.Maximum:
		return field.ErrorList{field.Invalid(path, text,
			fmt.Sprintf("the worker has minimum %d and maximum %d: write bounds within these, %s, or write excess, which always takes them from the worker", w.Minimum, w.Maximum, example))}
	}
	return validateRoom(b, text, "in the bounds", path)
}

// validateRoom reports an excess that can never exist. The reserve is limited by what the maximum
// leaves beside the workload, which can be as little as nothing.
func validateRoom(b machine.Bounds, text, whose string, path *field.Path) field.ErrorList {
	// A capacity that is unknown is no error here: what resources come to is seen when there are
	// machines.
	most, _ := reserve.Effective(reserve.Wishes{Bounds: &b}, 0, nil)
	requests := most.Wish > 0 || b.Excess.Percent != nil || len(b.Excess.Resources) > 0
	switch {
	case requests && b.Min == b.Max:
		return field.ErrorList{field.Invalid(path, text, fmt.Sprintf("minimum and maximum %s are both %d, so there is no room for a reserve: raise the maximum, or write 0", whose, b.Max))}
	case most.Wish > most.Excess:
		return field.ErrorList{field.Invalid(path, text, fmt.Sprintf("%d machines in reserve are more than the maximum %d %s: write at most %d, or raise the maximum", most.Wish, b.Max, whose, b.Max))}
	}
	return nil
}

// validateAnnotations reports worker annotations that say the same in another place.
func validateAnnotations(p v1alpha1.Pool, w *gardencorev1beta1.Worker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	conflict := func(key string, set bool) {
		if _, annotated := w.Annotations[key]; annotated && set {
			errs = append(errs, field.Invalid(path, p.Name, fmt.Sprintf("the worker has the annotation %s, too: remove the annotation, or the pool from providerConfig", key)))
		}
	}
	reserves := p.Excess != nil || p.Bounds != ""
	conflict(machine.PoolExcessAnnotation, reserves)
	conflict(machine.BoundsAnnotation, reserves)
	conflict(machine.BalanceAnnotation, p.Balance != "")
	return errs
}
