// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"errors"
	"fmt"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
)

// Pools writes what a configuration requests into the annotations of a Worker's pools. The actuator
// of the Worker copies them to the MachineDeployments. Pools that the configuration does not name,
// and names of pools that do not exist, are left alone.
func Pools(w *extensionsv1alpha1.Worker, c *v1alpha1.EvenkeelConfig) error {
	wishes := map[string]v1alpha1.Pool{}
	for _, p := range c.Pools {
		wishes[p.Name] = p
	}
	var errs []error
	for i := range w.Spec.Pools {
		if wish, ok := wishes[w.Spec.Pools[i].Name]; ok {
			errs = append(errs, annotate(&w.Spec.Pools[i], wish))
		}
	}
	return errors.Join(errs...)
}

func annotate(pool *extensionsv1alpha1.WorkerPool, wish v1alpha1.Pool) error {
	bounds, err := boundsOf(pool, wish)
	if err != nil {
		return fmt.Errorf("pool %s: %w", pool.Name, err)
	}
	holder := metav1.ObjectMeta{Annotations: pool.Annotations}
	if bounds != nil {
		metav1.SetMetaDataAnnotation(&holder, machine.BoundsAnnotation, bounds.String())
		delete(holder.Annotations, machine.PoolExcessAnnotation)
	}
	if wish.Balance != "" {
		metav1.SetMetaDataAnnotation(&holder, machine.BalanceAnnotation, string(wish.Balance))
	}
	pool.Annotations = holder.Annotations
	return nil
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
		b.Max = min(max(narrow.Max, pool.Minimum), pool.Maximum)
		b.Min = min(max(narrow.Min, pool.Minimum), b.Max)
		b.Excess = narrow.Excess
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
