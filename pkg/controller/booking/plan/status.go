// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
)

// After returns the request of a decision with its new status. A condition keeps its time if its
// status does not change.
func (d Decision) After(now time.Time) *provisioningv1.ProvisioningRequest {
	after := d.Request.DeepCopy()
	for _, c := range d.Conditions {
		status := metav1.ConditionFalse
		if c.Holds {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{
			Type: c.Type, Status: status, Reason: c.Reason, Message: c.Message, ObservedGeneration: after.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	d.setDetail(after, provisioningv1.BookedDetail, d.Booked)
	d.setDetail(after, provisioningv1.LeftDetail, d.Left)
	return after
}

func (d Decision) setDetail(o *provisioningv1.ProvisioningRequest, name string, machines map[string]int) {
	if machines == nil {
		return
	}
	if o.Status.ProvisioningClassDetails == nil {
		o.Status.ProvisioningClassDetails = map[string]provisioningv1.Detail{}
	}
	o.Status.ProvisioningClassDetails[name] = provisioningv1.Detail(textOf(machines))
}

func textOf(machines map[string]int) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		words = append(words, fmt.Sprintf("%s=%d", name, machines[name]))
	}
	return strings.Join(words, " ")
}

// machinesOf reads a detail. What it cannot read is omitted.
func machinesOf(o *provisioningv1.ProvisioningRequest, detail string) map[string]int {
	machines := map[string]int{}
	for word := range strings.FieldsSeq(string(o.Status.ProvisioningClassDetails[detail])) {
		name, count, _ := strings.Cut(word, "=")
		if n, err := strconv.Atoi(count); err == nil {
			machines[name] = n
		}
	}
	return machines
}
