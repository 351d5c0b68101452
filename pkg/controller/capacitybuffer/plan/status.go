// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// maxNames is how many names a message has at most.
const maxNames = 5

// NewStatus returns the status for a decision. A condition keeps its time if its status does not
// change.
func NewStatus(d Decision, now time.Time) v1beta1.CapacityBufferStatus {
	s := v1beta1.CapacityBufferStatus{ProvisioningStrategy: ptr.To(v1beta1.StrategyReserved), Conditions: slices.Clone(d.Buffer.Status.Conditions)}
	if d.ended() != nil && d.Buffer.Status.Replicas != nil {
		s.Replicas = d.Buffer.Status.Replicas
	} else if d.Problem == nil || d.Chunks > 0 { // with a problem, as many as there were
		s.Replicas = ptr.To(int32(min(d.Chunks+d.consumed(), math.MaxInt32)))
	}
	d.keepFill(&s)
	if d.Problem == nil && d.Buffer.Spec.PodTemplateRef != nil {
		s.PodTemplateRef, s.PodTemplateGeneration = &v1beta1.LocalObjectRef{Name: d.Template.Name}, ptr.To(d.Template.Generation)
	}
	for _, c := range append([]condition{
		{v1beta1.ConditionReadyForProvisioning, d.attributes()},
		{v1beta1.ConditionLimitedByQuotas, d.limited()},
		{v1beta1.ConditionProvisioning, d.provisioning()},
		{v1beta1.ConditionReady, d.readyProblem()},
	}, d.end()...) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: c.kind, Status: metav1.ConditionStatus(reason.CapacityBuffer[c.kind].Find(c.is.Reason).Status), Reason: c.is.Reason, Message: c.is.Message,
			ObservedGeneration: d.Buffer.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	return s
}

// condition is a condition of a buffer, with its reason and message.
type condition struct {
	kind string
	is   *Problem
}

func (d *Decision) consumed() int {
	if d.Fill == nil {
		return 0
	}
	return d.Fill.Consumed
}

// keepFill writes how far a buffer has been used, or removes that if it is refilled. While a buffer
// that fills once is not served, that stays as it is.
func (d *Decision) keepFill(s *v1beta1.CapacityBufferStatus) {
	switch {
	case d.Fill != nil:
		s.ConsumedReplicas = ptr.To(int32(min(d.Fill.Consumed, math.MaxInt32)))
	case d.Buffer.FillsOnce():
		s.ConsumedReplicas = d.Buffer.Status.ConsumedReplicas
	default:
		meta.RemoveStatusCondition(&s.Conditions, v1beta1.ConditionFulfilled)
		meta.RemoveStatusCondition(&s.Conditions, v1beta1.ConditionExpired)
	}
}

// end returns the condition by which a buffer that fills once ends, if it has.
func (d *Decision) end() []condition {
	switch p := d.ended(); {
	case p == nil:
		return nil
	case p.Reason == reason.BufferFilled:
		return []condition{{v1beta1.ConditionFulfilled, p}}
	default:
		return []condition{{v1beta1.ConditionExpired, p}}
	}
}

// ended returns how a buffer that fills once has ended; nil if it has not.
func (d *Decision) ended() *Problem {
	if d.Fill == nil || d.Fill.Ended == "" {
		return nil
	}
	used := "pods have used " + plural.Of(d.Fill.Consumed, "chunk")
	if d.Fill.Ended == reason.FillDeadlineExceeded {
		used += " before the deadline"
	}
	return problem(d.Fill.Ended, "%s, and the buffer no longer holds room; to use it again, delete and create it", used)
}

// After returns the buffer of a decision with its new status.
func (d Decision) After(now time.Time) *v1beta1.CapacityBuffer {
	after := d.Buffer.DeepCopy()
	after.Status = NewStatus(d, now)
	return after
}

func (d *Decision) attributes() *Problem {
	if d.Problem != nil {
		return d.Problem
	}
	asked := "the buffer asks for " + plural.Of(d.Asked, "chunk")
	if d.ended() != nil {
		asked = "the buffer no longer asks for chunks"
	} else if n := d.consumed(); n > 0 {
		asked += fmt.Sprintf(", and pods have used %d", n)
	}
	if d.Unprepared != "" {
		asked += "; images are not prepared: " + d.Unprepared
	}
	return problem(reason.AttributesSetSuccessfully, "%s", asked)
}

func (d *Decision) limited() *Problem {
	if len(d.Quotas) == 0 {
		return problem(reason.NotLimited, "ResourceQuotas leave room for all chunks")
	}
	return problem(reason.ResourceQuotasAllocated, "ResourceQuotas leave room for %d of %s: %s", d.Chunks, plural.Of(d.Asked, "chunk"), joinNames(d.Quotas))
}

// provisioning returns the reason that Kueue reads, with the message of Ready.
func (d *Decision) provisioning() *Problem {
	ready, why := d.readyProblem(), reason.RequiresNewCapacity
	switch {
	case ready.Reason == reason.NotReadyForProvisioning:
		why = reason.NotReadyForProvisioning
	case d.Chunks == 0:
		why = reason.BufferEmpty
	case ready.Reason == reason.Complete:
		why = reason.FitsExistingCapacity
	}
	return &Problem{Reason: why, Message: ready.Message}
}

// without returns why there are no chunks, or why some have no place; nil if all have one.
func (d *Decision) without() *Problem {
	switch ended := d.ended(); {
	case ended != nil:
		return ended
	case d.Problem != nil:
		return problem(reason.NotReadyForProvisioning, "see the condition ReadyForProvisioning: %s", d.Problem.Message)
	case d.Lack != nil:
		return d.Lack
	case d.Chunks == 0 && d.Asked > 0:
		return problem(reason.NoChunks, "ResourceQuotas leave no room for chunks: %s", joinNames(d.Quotas))
	case d.Chunks == 0:
		return problem(reason.NoChunks, "the buffer asks for no chunks now")
	}
	return nil
}

func (d *Decision) readyProblem() *Problem {
	if p := d.without(); p != nil {
		return p
	}
	where := fmt.Sprintf("room for %d of %s is ready %s", d.Ready, plural.Of(d.Chunks, "chunk"), d.where())
	if d.Ready >= d.Chunks {
		return problem(reason.Complete, "%s", where)
	}
	return problem(reason.Growing, "%s", where)
}

// where returns where chunks have a place. It does not say how many are on machines that serve: that
// changes often.
func (d *Decision) where() string {
	switch in := "in " + joinNames(d.Pools); {
	case d.Free == 0:
		return in
	case len(d.Pools) == 0:
		return "on machines that serve"
	default:
		return in + " and on machines that serve"
	}
}

// shortageReason returns why some chunks have no place.
func (c *class) shortageReason(d *Decision, chunk *fit.Pod, checks *int) *Problem {
	missing := fmt.Sprintf("there is no room for %d of %s", d.Chunks-d.Placed, plural.Of(d.Chunks, "chunk"))
	named := d.Buffer.Annotations[v1beta1.PoolAnnotation]
	switch {
	case len(c.sites) == 0:
		return problem(reason.NoPools, "%s: no MachineDeployment has both bounds with a maximum and a known machine size", missing)
	case named != "" && !slices.ContainsFunc(c.sites, func(s site) bool { return s.Deployment.Name == named || pool.WorkerPoolOf(s.Deployment) == named }):
		return problem(reason.PoolNotFound, "%s: no MachineDeployment or worker pool named %.80q can hold chunks", missing, named)
	case *checks <= 0:
		return problem(reason.LimitReached, "%s: there are too many different chunks to find out why", missing)
	}
	*checks--
	h := c.possibleHomes(chunk)
	switch {
	case len(h.all) == 0:
		return problem(reason.DoesNotFit, "%s: a chunk fits no empty machine", missing)
	case len(h.blocked) > 0:
		return problem(reason.CannotBeMade, "%s: machines cannot be created in %s", missing, joinNames(h.blocked))
	case len(h.capped) > 0:
		return problem(reason.LimitReached, "%s: at most %d machines of each MachineDeployment hold chunks", missing, partOf(len(c.sites)))
	case len(h.spare) > 0 && c.target.unfinished[chunk]:
		return problem(reason.LimitReached, "%s: there are too many different chunks to find a place for each", missing)
	case len(h.spare) > 0:
		return problem(reason.DoesNotFit, "%s: affinity or topology spread allows no more chunks in %s", missing, joinNames(h.spare))
	}
	return problem(reason.NoRoom, "%s: raise max in the bounds of %s, or ask for fewer chunks", missing, joinNames(h.all))
}

// homes are the MachineDeployments that a chunk fits: all, those that may have more machines but
// where none can be created, those with more machines than are considered, and those that may have
// more machines than now hold chunks.
type homes struct{ all, blocked, capped, spare []string }

func (c *class) possibleHomes(chunk *fit.Pod) (h homes) {
	for i, s := range c.sites {
		if !s.fitsEmptyMachine(chunk) {
			continue
		}
		name, full := s.Deployment.Name, c.target.machines[i] >= s.room
		h.all = append(h.all, name)
		switch {
		case s.blocked && !full:
			h.blocked = append(h.blocked, name)
		case s.capped && full:
			h.capped = append(h.capped, name)
		case !full:
			h.spare = append(h.spare, name)
		}
	}
	return h
}

// fitsEmptyMachine reports whether a chunk fits an empty machine.
func (s *site) fitsEmptyMachine(chunk *fit.Pod) bool {
	node := s.reserveNode(0)
	node.Closed = false
	return fit.NewRoom([]fit.Node{node}).Ask(chunk, node.Object.Name) == fit.Fits
}

// joinNames joins the first names, and counts the others.
func joinNames(names []string) string {
	if len(names) > maxNames {
		return strings.Join(names[:maxNames], ", ") + fmt.Sprintf(" and %d more", len(names)-maxNames)
	}
	return strings.Join(names, ", ")
}
