// SPDX-License-Identifier: Apache-2.0

package v1

import "k8s.io/apimachinery/pkg/api/meta"

// Details that Evenkeel writes: the machines that were booked for a request, and those of them that do
// not run its pods yet, as in "pool-a=2 pool-b=1".
const (
	BookedDetail = "evenkeel.dev/booked"
	LeftDetail   = "evenkeel.dev/left"
)

// States of a request.
const (
	StateWaiting     = "Waiting"
	StateProvisioned = "Provisioned"
	StateFailed      = "Failed"
	StateExpired     = "Expired"
)

// Reserved reports whether Evenkeel serves the request.
func (r *ProvisioningRequest) Reserved() bool { return r.Spec.ProvisioningClassName == ClassReserved }

// State returns the state that the conditions of the request amount to.
func (r *ProvisioningRequest) State() string {
	for _, s := range []struct{ condition, state string }{
		{ConditionFailed, StateFailed},
		{ConditionBookingExpired, StateExpired},
		{ConditionProvisioned, StateProvisioned},
	} {
		if meta.IsStatusConditionTrue(r.Status.Conditions, s.condition) {
			return s.state
		}
	}
	return StateWaiting
}
