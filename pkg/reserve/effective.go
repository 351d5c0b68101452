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

// ErrUnknownCapacity says that an excess in resources cannot be turned into machines, because nothing is known of how
// much of a resource one machine has.
var ErrUnknownCapacity = errors.New("capacity of a machine is not known")

// Wishes are the places where an excess can be asked for.
type Wishes = pool.Wishes

// Wanted is an excess in machines.
type Wanted struct {
	// Wish is what was asked for, Excess what bounds leave of it.
	Wish, Excess int
	// Max is the max of the bounds, or Unbounded.
	Max int
}

// Effective says how many machines are wanted in reserve beside replicas (law 13). A share counts before bounds, bounds
// before the field. Where a wish in resources cannot be turned into machines the error is ErrUnknownCapacity.
func Effective(w Wishes, replicas int, allocatable corev1.ResourceList) (Wanted, error) {
	wanted := Wanted{Max: Unbounded}
	if w.Bounds != nil {
		wanted.Max = int(w.Bounds.Max)
	}
	var err error
	switch {
	case w.Share != nil:
		wanted.Wish = int(*w.Share)
	case w.Bounds != nil && w.Bounds.Excess != nil:
		wanted.Wish, err = Count(*w.Bounds.Excess, replicas, allocatable)
	case w.Field != nil:
		wanted.Wish = int(*w.Field)
	}
	wanted.Wish = max(0, wanted.Wish)
	wanted.Excess = max(0, min(wanted.Wish, wanted.Max-replicas))
	return wanted, err
}

// Count turns an excess into machines, rounded up: as many as cover each part of it. The answer is never above the
// largest int32.
func Count(e machine.Excess, replicas int, allocatable corev1.ResourceList) (int, error) {
	var most int
	if e.Count != nil {
		most = int(*e.Count)
	}
	if e.Percent != nil {
		most = max(most, percent(*e.Percent, replicas))
	}
	var errs []error
	for _, amount := range e.Resources {
		n, err := cover(amount, replicas, allocatable)
		most = max(most, n)
		errs = append(errs, err)
	}
	return most, errors.Join(errs...)
}

// cover is the number of machines that hold one amount, of a resource that they have. Machines of one MachineDeployment
// are alike, so a percentage of what they have is the same percentage of their number.
func cover(amount machine.ResourceExcess, replicas int, allocatable corev1.ResourceList) (int, error) {
	if zero(amount) {
		return 0, nil
	}
	each, ok := allocatable[amount.Name]
	if !ok || each.Sign() <= 0 {
		return 0, fmt.Errorf("turn %s into machines: %w", amount, ErrUnknownCapacity)
	}
	if amount.Percent != nil {
		return percent(*amount.Percent, replicas), nil
	}
	return quotient(*amount.Quantity, each), nil
}

// zero reports whether nothing is asked for; that needs no capacity.
func zero(amount machine.ResourceExcess) bool {
	if amount.Percent != nil {
		return *amount.Percent == 0
	}
	return amount.Quantity == nil || amount.Quantity.Sign() <= 0
}

func percent(p int32, of int) int {
	return int(min((int64(p)*int64(max(0, of))+99)/100, math.MaxInt32))
}

// quotient is a / b rounded up, exactly: quantities may have more digits than an int64.
func quotient(a, b resource.Quantity) int {
	x, xScale := exact(a)
	y, yScale := exact(b)
	// Both become multiples of the smaller unit.
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

// exact is q as value / 10^scale, of which q knows nothing afterwards.
func exact(q resource.Quantity) (value *big.Int, scale int32) {
	dec := q.DeepCopy()
	d := dec.AsDec()
	return new(big.Int).Set(d.UnscaledBig()), int32(d.Scale())
}
