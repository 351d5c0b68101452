// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

// selectorKey is a label that no pod has. Its value is the UID of the Reserve.
const selectorKey = "reserve.autoscaling.evenkeel.dev/uid"

// readyReason returns the reason of the condition Ready.
func (d *Decision) readyReason(sites []site, short int) {
	ready := 0
	for _, p := range d.Parts {
		ready += p.Ready
	}
	where := fmt.Sprintf("%d of %d machines are ready in %s", min(ready, d.Desired), d.Desired, plural.Of(len(sites), "MachineDeployment"))
	say := func(why, format string, arguments ...any) {
		d.Reason, d.Message = why, fmt.Sprintf(format, arguments...)
	}
	lacks := lacking(sites)
	switch {
	case len(sites) == 0:
		say(reason.NoPools, "spec.pools selects no MachineDeployment in namespace %s", d.Reserve.Namespace)
	case d.Desired == 0:
		say(reason.NotRequested, "no machines are requested now%s", d.because())
	case short > 0 && lacks[reason.Hibernated] != nil:
		say(reason.Hibernated, "the cluster is hibernated and has no reserve")
	case short > 0 && lacks[reason.MaximumUnknown] != nil:
		say(reason.MaximumUnknown, "%s; there is no room for %d, because Gardener created %s, and the maximum is unknown: set the annotation bounds",
			where, short, listed(lacks[reason.MaximumUnknown]))
	case short > 0 && lacks[reason.PoolsDrained] != nil:
		say(reason.PoolsDrained, "%s; there is no room for %d, because the annotation drain-reserve removes the reserve of %s", where, short, listed(lacks[reason.PoolsDrained]))
	case short > 0:
		say(reason.NoRoom, "%s; there is no room for %d: raise max in the bounds, select more MachineDeployments, or request less%s", where, short, d.because())
	case ready >= d.Desired:
		say(reason.Complete, "%s%s", where, d.because())
	case len(blocked(d.Parts)) > 0:
		say(reason.CannotBeMade, "%s; machines cannot be created in %s, and other MachineDeployments replace only some of them%s", where, listed(blocked(d.Parts)), d.because())
	default:
		say(reason.Growing, "%s%s", where, d.because())
	}
}

// because names the active schedules, as the end of a sentence.
func (d *Decision) because() string {
	if len(d.Active) == 0 {
		return ""
	}
	return "; active: " + strings.Join(d.Active, ", ")
}

// lacking returns the names of MachineDeployments without room, by reason.
func lacking(sites []site) map[string][]string {
	all := map[string][]string{}
	for _, s := range sites {
		if s.lacks != "" {
			all[s.lacks] = append(all[s.lacks], s.Deployment.Name)
		}
	}
	return all
}

// mostListed is how many MachineDeployments a message names: the API server stores no longer ones
// than 32768 characters.
const mostListed = 20

// listed names MachineDeployments, the first of many.
func listed(names []string) string {
	if more := len(names) - mostListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed], ", "), more)
	}
	return strings.Join(names, ", ")
}

func blocked(parts []Part) (names []string) {
	for _, p := range parts {
		if p.Blocked {
			names = append(names, p.Deployment.Name)
		}
	}
	return names
}

// NewStatus returns the status for a decision. The condition keeps its time if its status does not
// change.
func NewStatus(d Decision, now time.Time) v1alpha1.ReserveStatus {
	s := v1alpha1.ReserveStatus{
		ObservedGeneration: d.Reserve.Generation, DesiredReplicas: int32(d.Desired), ActiveSchedules: d.Active,
		Selector: selectorKey + "=" + string(d.Reserve.UID), Conditions: slices.Clone(d.Reserve.Status.Conditions),
	}
	for _, p := range d.Parts {
		s.Replicas, s.ReadyReplicas = s.Replicas+int32(p.Exist), s.ReadyReplicas+int32(p.Ready)
		s.Pools = append(s.Pools, v1alpha1.ReservePoolStatus{
			Name: p.Deployment.Name, DesiredReplicas: int32(p.Machines), ReadyReplicas: int32(p.Ready), Blocked: p.Blocked, CountedBy: p.CountedBy,
		})
	}
	if d.Next != nil {
		at := d.Next.At.Truncate(time.Second) // as it is stored
		s.NextChange = &v1alpha1.ReserveChange{Time: metav1.NewTime(at), DesiredReplicas: int32(d.Next.Desired)}
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionStatus(reason.Reserve[v1alpha1.ConditionReady].Find(d.Reason).Status), Reason: d.Reason, Message: d.Message,
		ObservedGeneration: d.Reserve.Generation, LastTransitionTime: metav1.NewTime(now),
	})
	return s
}

// After returns the Reserve of a decision with its new status.
func (d Decision) After(now time.Time) *v1alpha1.Reserve {
	after := d.Reserve.DeepCopy()
	after.Status = NewStatus(d, now)
	return after
}
