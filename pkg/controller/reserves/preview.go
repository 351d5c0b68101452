// SPDX-License-Identifier: Apache-2.0

package reserves

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
)

// After returns the MachineDeployment of a request as the controller would leave it.
func (r Request) After() (*machine.MachineDeployment, error) {
	d := &machine.MachineDeployment{}
	if err := still.Merge(r.Deployment, r.patch(), d); err != nil {
		return nil, fmt.Errorf("change machine deployment %s: %w", r.Deployment.Name, err)
	}
	return d, nil
}

// After returns the Reserve of a decision with its new status.
func (d Decision) After(now time.Time) *v1alpha1.Reserve {
	after := d.Reserve.DeepCopy()
	after.Status = NewStatus(d, now)
	return after
}
