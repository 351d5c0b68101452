// SPDX-License-Identifier: Apache-2.0

package autoscaler

// View is the state of one Shoot.
type View struct {
	// Wanted reports whether the Shoot is to have an unmodified cluster-autoscaler.
	Wanted bool
	// Served reports whether the Deployment of the manager has the server, and Runs whether all its
	// pods do.
	Served, Runs bool
	// Offered reports whether the server offers all pools.
	Offered bool
	// Exists reports whether there is a cluster-autoscaler, and Upstream whether it is the
	// unmodified one.
	Exists, Upstream bool
}

// Step is one write.
type Step string

const (
	// TouchManager makes the webhook check the manager.
	TouchManager Step = "TouchManager"
	// TouchAutoscaler makes the webhook check cluster-autoscaler.
	TouchAutoscaler Step = "TouchAutoscaler"
	// RestoreAutoscaler restores the fork.
	RestoreAutoscaler Step = "RestoreAutoscaler"
)

// NewPlan returns the steps to try, in this order, until one has an effect; none at rest.
func NewPlan(v View) []Step {
	switch {
	case v.Upstream && !v.Wanted:
		return []Step{RestoreAutoscaler}
	case v.Upstream && !v.Served:
		return []Step{TouchManager, RestoreAutoscaler}
	case v.Upstream && !v.Offered:
		return []Step{RestoreAutoscaler}
	case !v.Upstream && v.Served && !v.Wanted:
		return []Step{TouchManager}
	case !v.Upstream && v.Exists && v.Served && v.Runs && v.Offered && v.Wanted:
		return []Step{TouchAutoscaler}
	}
	return nil
}
