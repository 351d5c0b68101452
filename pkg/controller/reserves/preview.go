// SPDX-License-Identifier: Apache-2.0

package reserves

import (
	"fmt"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
)

// After returns the MachineDeployment of a request as the controller would leave it.
func After(r plan.Request) (*machine.MachineDeployment, error) {
	d := &machine.MachineDeployment{}
	if err := still.Merge(r.Deployment, patchOf(r), d); err != nil {
		return nil, fmt.Errorf("change machine deployment %s: %w", r.Deployment.Name, err)
	}
	return d, nil
}
