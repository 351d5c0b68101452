// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"slices"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Values of the flag --reserve-accounting.
const (
	AccountingAuto      = "auto"
	AccountingAdditive  = "additive"
	AccountingInclusive = "inclusive"
)

// CheckAccounting returns what is wrong with a value of the flag --reserve-accounting.
func CheckAccounting(mode string) error {
	if !slices.Contains([]string{AccountingAuto, AccountingAdditive, AccountingInclusive}, mode) {
		return fmt.Errorf("--reserve-accounting: %q is invalid: use auto, additive or inclusive", mode)
	}
	return nil
}

// Accounting returns where the flag --reserve-accounting counts the reserve of a MachineDeployment
// that does not define it itself. Gardener reports whether the control cluster is a Gardener's.
func Accounting(mode string, gardener bool, d *v1alpha1.MachineDeployment) v1alpha1.Accounting {
	if mode == AccountingInclusive || mode == AccountingAuto && gardener && d.Labels[pool.WorkerPoolLabel] != "" {
		return v1alpha1.AccountingInclusive
	}
	return v1alpha1.AccountingAdditive
}
