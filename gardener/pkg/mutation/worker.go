// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"errors"
	"fmt"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
)

// Pools writes what a configuration requests into the annotations of a Worker's pools. The actuator
// of the Worker copies them to the MachineDeployments. Where the owner has annotated a worker for
// which the configuration has neither excess nor bounds, minimum and maximum are brought up to date.
// Names of pools that do not exist are left alone. For an unmodified cluster-autoscaler, each pool
// has bounds: it scales no other.
func Pools(w *extensionsv1alpha1.Worker, c *v1alpha1.EvenkeelConfig) error {
	wishes := map[string]v1alpha1.Pool{}
	for _, p := range c.Pools {
		wishes[p.Name] = p
	}
	var errs []error
	for i := range w.Spec.Pools {
		pool := &w.Spec.Pools[i]
		errs = append(errs, annotate(pool, wishes[pool.Name]))
		if _, bounded := pool.Annotations[machine.BoundsAnnotation]; !bounded && c.Autoscaler == v1alpha1.AutoscalerUpstream {
			set(pool, machine.BoundsAnnotation, machine.Bounds{Min: pool.Minimum, Max: pool.Maximum}.String())
		}
	}
	return errors.Join(errs...)
}

// update gives a pool with annotations of its owner the bounds that the manager would find in the
// Worker if it were allowed to read it. What the owner has written in a wrong form stays: a condition
// says what to write.
func update(pool *extensionsv1alpha1.WorkerPool) {
	_, excess := pool.Annotations[machine.PoolExcessAnnotation]
	text, bounds := pool.Annotations[machine.BoundsAnnotation]
	current := machine.Bounds{Min: pool.Minimum, Max: pool.Maximum}
	if bounds {
		narrow, err := machine.ParseBounds(text)
		if err != nil {
			return
		}
		current = within(pool, narrow)
	}
	if excess || bounds {
		_ = setBounds(pool, current) // what cannot be written stays as the owner wrote it
	}
}

// setBounds writes bounds into the annotation, unless they are longer than it may be: minimum and
// maximum may have more digits than those that were read.
func setBounds(pool *extensionsv1alpha1.WorkerPool, b machine.Bounds) error {
	text := b.String()
	if _, err := machine.ParseBounds(text); err != nil {
		return err
	}
	set(pool, machine.BoundsAnnotation, text)
	return nil
}

// within are bounds that are not beyond minimum and maximum of a pool.
func within(pool *extensionsv1alpha1.WorkerPool, b machine.Bounds) machine.Bounds {
	b.Max = min(max(b.Max, pool.Minimum), pool.Maximum)
	b.Min = min(max(b.Min, pool.Minimum), b.Max)
	return b
}

func annotate(pool *extensionsv1alpha1.WorkerPool, wish v1alpha1.Pool) error {
	bounds, err := boundsOf(pool, wish)
	if err == nil && bounds != nil {
		err = setBounds(pool, *bounds)
	}
	if err != nil {
		return fmt.Errorf("pool %s: %w", pool.Name, err)
	}
	if bounds != nil {
		delete(pool.Annotations, machine.PoolExcessAnnotation)
	} else {
		update(pool)
	}
	if wish.Balance != "" {
		set(pool, machine.BalanceAnnotation, string(wish.Balance))
	}
	return nil
}

func set(pool *extensionsv1alpha1.WorkerPool, key, value string) {
	if pool.Annotations == nil {
		pool.Annotations = map[string]string{}
	}
	pool.Annotations[key] = value
}

// boundsOf returns what a pool requests, nil for no reserve of its own. Minimum and maximum are those
// that the Worker has at this moment, or less if the wish has bounds.
func boundsOf(pool *extensionsv1alpha1.WorkerPool, wish v1alpha1.Pool) (*machine.Bounds, error) {
	b := machine.Bounds{Min: pool.Minimum, Max: pool.Maximum}
	switch {
	case wish.Bounds != "":
		narrow, err := machine.ParseBounds(wish.Bounds)
		if err != nil {
			return nil, err
		}
		b = within(pool, narrow)
	case wish.Excess != nil:
		excess, err := machine.ParseExcess(wish.Excess.String())
		if err != nil {
			return nil, err
		}
		b.Excess = &excess
	default:
		return nil, nil
	}
	return &b, nil
}
