// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// ErrUnknownCapacity is returned if an excess in resources cannot be converted to machines, because
// the capacity of a machine is unknown.
var ErrUnknownCapacity = errors.New("capacity of a machine is unknown")

// Wishes are the places where an excess can be requested.
type Wishes = pool.Wishes

// EffectiveExcess is an excess in machines.
type EffectiveExcess struct {
	// Wish is the requested excess, Excess what bounds leave of it.
	Wish, Excess int
	// Max is the max of the bounds, or Unbounded.
	Max int
}

// Effective returns the number of machines to keep in reserve beside replicas (law 13). A share
// takes precedence over bounds, and bounds over the field. What a Reserve requests counts if it is
// more. The error is ErrUnknownCapacity if an excess in resources cannot be converted to machines.
func Effective(w Wishes, replicas int, allocatable corev1.ResourceList) (EffectiveExcess, error) {
	wanted := EffectiveExcess{Max: Unbounded}
	if w.Bounds != nil {
		wanted.Max = int(w.Bounds.Max)
	}
	var err error
	switch {
	case w.Share != nil:
		wanted.Wish = int(*w.Share)
	case w.Bounds != nil && w.Bounds.Excess != nil:
		wanted.Wish, err = MachineCount(*w.Bounds.Excess, replicas, allocatable)
	case w.Field != nil:
		wanted.Wish = int(*w.Field)
	}
	wanted.Wish = max(0, wanted.Wish)
	if w.Requested != nil {
		wanted.Wish = max(wanted.Wish, int(w.Requested.Machines))
	}
	wanted.Excess = max(0, min(wanted.Wish, wanted.Max-replicas))
	return wanted, err
}

// CapacityAdvice returns what a user can do about [ErrUnknownCapacity], given what one machine offers
// as far as that is known, and why amounts are not known. A nodeTemplate has no effect once a Node is
// ready.
func CapacityAdvice(allocatable corev1.ResourceList, unknown pool.Unknown) string {
	if len(unknown) > 0 {
		return unknown.String()
	}
	if len(allocatable) == 0 {
		return "give the MachineClass a nodeTemplate with that capacity, or wait for a ready Node"
	}
	return "its machines do not offer that resource: request another one, or make the Nodes offer it (if none is ready yet, add it to the nodeTemplate of the MachineClass)"
}

// MachineCount converts an excess to machines, rounded up: enough to cover each part of it. The
// result is at most the largest int32.
func MachineCount(e machine.Excess, replicas int, allocatable corev1.ResourceList) (int, error) {
	var most int
	if e.Count != nil {
		most = int(*e.Count)
	}
	if e.Percent != nil {
		most = max(most, percent(*e.Percent, replicas))
	}
	var errs []error
	for _, amount := range e.Resources {
		n, err := machinesFor(amount, replicas, allocatable)
		most = max(most, n)
		errs = append(errs, err)
	}
	return most, errors.Join(errs...)
}

// machinesFor returns the number of machines that together have this amount of a resource. The
// machines of a MachineDeployment are alike, so a percentage of their resource is the same
// percentage of their number.
func machinesFor(amount machine.ResourceExcess, replicas int, allocatable corev1.ResourceList) (int, error) {
	if isZero(amount) {
		return 0, nil
	}
	each := allocatable[amount.Name]
	if each.Sign() <= 0 {
		return 0, fmt.Errorf("convert %s to machines: %w", amount, ErrUnknownCapacity)
	}
	if amount.Percent != nil {
		return percent(*amount.Percent, replicas), nil
	}
	return quotient(*amount.Quantity, each), nil
}

// isZero reports whether nothing is requested, which requires no capacity.
func isZero(amount machine.ResourceExcess) bool {
	if amount.Percent != nil {
		return *amount.Percent == 0
	}
	return amount.Quantity == nil || amount.Quantity.Sign() <= 0
}

func percent(p int32, of int) int {
	return int(min((int64(p)*int64(max(0, of))+99)/100, math.MaxInt32))
}

// quotient returns a / b, rounded up and exact: quantities may have more digits than an int64.
func quotient(a, b resource.Quantity) int {
	x, xScale := exactValue(a)
	y, yScale := exactValue(b)
	// Convert both to multiples of the smaller unit.
	if d := int64(xScale) - int64(yScale); d > 0 {
		y.Mul(y, new(big.Int).Exp(big.NewInt(10), big.NewInt(d), nil))
	} else {
		x.Mul(x, new(big.Int).Exp(big.NewInt(10), big.NewInt(-d), nil))
	}
	n, rest := x.QuoRem(x, y, new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	if !n.IsInt64() || n.Int64() > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(n.Int64())
}

// exactValue returns q as value / 10^scale, without a reference to q.
func exactValue(q resource.Quantity) (value *big.Int, scale int32) {
	dec := q.DeepCopy()
	d := dec.AsDec()
	return new(big.Int).Set(d.UnscaledBig()), int32(d.Scale())
}
