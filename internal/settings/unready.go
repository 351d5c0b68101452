// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Unready contains the flags that limit how many Nodes may be not ready.
type Unready struct{ pool.UnreadyLimits }

// AddFlags defines the flags, with cluster-autoscaler's names and defaults.
func (u *Unready) AddFlags(flags *pflag.FlagSet) {
	u.UnreadyLimits = pool.DefaultUnreadyLimits()
	flags.Float64Var(&u.Percentage, "max-total-unready-percentage", u.Percentage,
		"Largest percentage of Nodes that may be not ready. Beyond it, no machine is moved or drained; a zone in which more Nodes are not ready gets no growth and no reserve.")
	flags.IntVar(&u.Count, "ok-total-unready-count", u.Count,
		"Number of Nodes that may be not ready, whatever --max-total-unready-percentage. In a zone, fewer count, too, if they are most of its Nodes.")
}

// Validate returns everything that is wrong, by flag.
func (u *Unready) Validate() error {
	var errs []error
	if !(u.Percentage >= 0 && u.Percentage <= 100) {
		errs = append(errs, fmt.Errorf("--max-total-unready-percentage: %v is invalid: use a number from 0 to 100", u.Percentage))
	}
	if u.Count < 0 {
		errs = append(errs, errors.New("--ok-total-unready-count: must not be negative"))
	}
	return errors.Join(errs...)
}
