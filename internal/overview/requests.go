// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
)

// Request is one ProvisioningRequest.
type Request struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Pods is how many pods it asks machines for.
	Pods int `json:"pods"`
	// Booked are the machines that were booked for it, and Left those of them that do not run its pods
	// yet, as in "pool-a=2 pool-b=1".
	Booked string `json:"booked,omitempty"`
	Left   string `json:"left,omitempty"`
	// Ready is the condition that says in which state it is, which is the reason.
	Ready Condition `json:"ready"`
}

func (r *reading) requests() []Request {
	var all []Request
	for _, o := range slices.SortedFunc(slices.Values(r.Requests), byName) {
		if !o.Reserved() {
			continue
		}
		one := Request{
			Namespace: o.Namespace, Name: o.Name,
			Booked: string(o.Status.ProvisioningClassDetails[provisioningv1.BookedDetail]), Left: string(o.Status.ProvisioningClassDetails[provisioningv1.LeftDetail]),
		}
		for _, set := range o.Spec.PodSets {
			one.Pods += int(set.Count)
		}
		if len(o.Status.Conditions) > 0 {
			one.Ready = requestState(o)
		} else if !r.isNew(o) {
			r.addProblem(lacking, objectRef("provisioningrequest", o.Namespace, o.Name), "no controller has reported on it", "check that machine-controller-manager runs with --controllers=*, or with booking among them")
		}
		all = append(all, one)
	}
	return all
}

// requestState returns the state of a request, with the condition that says so.
func requestState(o *provisioningv1.ProvisioningRequest) Condition {
	state := o.State()
	is := Condition{Status: "False", Reason: state}
	kind := provisioningv1.ConditionProvisioned
	switch state {
	case provisioningv1.StateProvisioned:
		is.Status = "True"
	case provisioningv1.StateFailed:
		kind = provisioningv1.ConditionFailed
	case provisioningv1.StateExpired:
		kind = provisioningv1.ConditionBookingExpired
	}
	if c := meta.FindStatusCondition(o.Status.Conditions, kind); c != nil {
		is.Message, is.Since = c.Message, c.LastTransitionTime.Time
	}
	return is
}
