// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	capacitybufferplan "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
)

// BufferEnd is the end of one CapacityBuffer.
type BufferEnd struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Chunks are what quotas leave of what it asks for; Placed have a place, and Ready of them on
	// machines that are ready.
	Chunks int `json:"chunks"`
	Placed int `json:"placed"`
	Ready  int `json:"ready"`
	// Pools are the MachineDeployments that hold them.
	Pools []string `json:"machineDeployments,omitempty"`
	// Reason and Message are those of the condition Ready.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Same reports whether the condition is as it is now.
	Same bool `json:"same,omitempty"`
}

// prepareBuffers prepares the plans for CapacityBuffers, if there are any and enough is known.
func (w *world) prepareBuffers(ctx context.Context) error {
	if len(w.buffers) == 0 && !slices.ContainsFunc(w.still.Reserves, isForBuffers) {
		return nil
	}
	namespaces := slices.Sorted(maps.Keys(w.namespaces()))
	switch {
	case !w.still.seesTarget() || w.still.Unread["capacitybuffers"] != "" || w.still.Unread["reserves"] != "":
		return nil
	case len(namespaces) > 1:
		w.addNote("CapacityBuffers are omitted: several namespaces have MachineDeployments, and the manager of each serves its own; use --namespace")
		return nil
	}
	w.chunksIn = append(namespaces, metav1.NamespaceDefault)[0]
	var err error
	if w.chunks, err = capacitybuffer.NewPreview(w.chunksIn, w.still.References); err != nil {
		return fmt.Errorf("begin a forecast: %w", err)
	}
	if err := w.showBuffers(); err != nil {
		return err
	}
	w.chunks.ReadScales(ctx)
	return nil
}

func (w *world) showBuffers() error {
	return w.chunks.SetObjects(capacitybuffer.Objects{
		Buffers: w.buffers.sorted(), Reserves: w.reserves.sorted(), Deployments: w.deployments.sorted(),
		Sets: w.sets.sorted(), Machines: w.machines.sorted(), Classes: w.still.Classes, Nodes: w.nodes.sorted(), Pods: w.pods.sorted(), Daemons: w.still.Daemons,
	}, w.now)
}

func (w *world) lookAtBuffers() error {
	w.plans.buffers = capacitybufferplan.Plan{}
	if w.chunks == nil {
		return nil
	}
	if err := w.showBuffers(); err != nil {
		return err
	}
	w.plans.buffers = w.chunks.Plan()
	return nil
}

// placeReserves carries out what CapacityBuffers need: Reserves.
func (w *world) placeReserves(context.Context) (moved bool, again time.Duration, err error) {
	if err := w.lookAtBuffers(); err != nil {
		return false, 0, err
	}
	for _, r := range w.plans.buffers.Requests {
		w.putReserve(r)
		moved = true
	}
	for _, d := range w.plans.buffers.Decisions {
		if after := d.After(w.now); !equality.Semantic.DeepEqual(after.Status, d.Buffer.Status) {
			w.buffers[keyOf(after)] = after
			moved = true
		}
	}
	return moved, 0, nil
}

// putReserve creates, changes or deletes the Reserve of a request.
func (w *world) putReserve(r capacitybufferplan.Request) {
	after := r.After(w.chunksIn)
	if after == nil {
		delete(w.reserves, keyOf(r.Reserve))
		return
	}
	if after.UID == "" {
		after.UID = types.UID("forecast-" + after.Name)
	}
	after.Generation++
	after.ResourceVersion = w.version()
	w.reserves[keyOf(after)] = after
}

// explainBuffers describes the plans of CapacityBuffers, and of the Reserves that they create.
func (w *world) explainBuffers() []Plan {
	var all []Plan
	for _, d := range w.plans.buffers.Decisions {
		all = append(all, w.explainBuffer(d))
	}
	for _, key := range slices.Sorted(maps.Keys(w.buffers)) {
		if b := w.buffers[key]; !b.Reserved() && w.changed["CapacityBuffer "+key] {
			all = append(all, Plan{Kind: "CapacityBuffer", Namespace: b.Namespace, Name: b.Name, State: AtRest, Changed: true,
				Why: fmt.Sprintf("its strategy is %s, so Evenkeel does not manage it", ptr.Deref(b.Spec.ProvisioningStrategy, v1beta1.StrategyActive))})
		}
	}
	for _, r := range w.plans.buffers.Requests {
		if r.Reserve == nil {
			all = append(all, Plan{Kind: "Reserve", Namespace: w.chunksIn, Name: capacitybufferplan.ReserveName(r.Pool), State: Moving, Why: "chunks of CapacityBuffers need it",
				Steps: []Step{bufferStep(r)}})
		}
	}
	return all
}

func (w *world) explainBuffer(d capacitybufferplan.Decision) Plan {
	b := d.After(w.now)
	p := Plan{Kind: "CapacityBuffer", Namespace: b.Namespace, Name: b.Name, State: AtRest, Changed: w.changed["CapacityBuffer "+keyOf(b)]}
	ready := meta.FindStatusCondition(b.Status.Conditions, v1beta1.ConditionReady)
	known := reason.CapacityBuffer[ready.Type].Find(ready.Reason)
	switch p.Why = ready.Message; {
	case known.Status == reason.False && !known.Passing:
		p.State = Blocked
	case known.Passing:
		p.State = Moving
	}
	for _, c := range b.Status.Conditions {
		if c.Type != ready.Type {
			p.Facts = append(p.Facts, fmt.Sprintf("%s: %s, %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	if d.Problem != nil {
		known = reason.CapacityBuffer[v1beta1.ConditionReadyForProvisioning].Find(d.Problem.Reason)
	}
	if p.State == Blocked && known.Name != reason.RightMissing { // the right of the controller
		p.Facts = append(p.Facts, remedy(known, b, p.Why)...)
	}
	return p
}

// bufferStep describes what happens to a Reserve because of buffers.
func bufferStep(r capacitybufferplan.Request) Step {
	s := Step{Do: Create, To: fmt.Sprint(r.Machines)}
	if len(r.Dedicated) > 0 {
		s.Why = "dedicated: " + machine.DedicationsText(r.Dedicated)
	}
	switch {
	case r.Machines == 0:
		return Step{Do: Delete, Why: "no chunk needs it"}
	case r.Reserve != nil:
		s.Do, s.From = Replicas, fmt.Sprint(r.Reserve.Spec.Replicas)
	}
	return s
}

// bufferSteps returns what happens to an existing Reserve because of buffers.
func (w *world) bufferSteps(key string) (steps []Step) {
	for _, r := range w.plans.buffers.Requests {
		if r.Reserve != nil && keyOf(r.Reserve) == key {
			steps = append(steps, bufferStep(r))
		}
	}
	return steps
}

// bufferEnds compares the CapacityBuffers at the end with the plans at the start.
func (w *world) bufferEnds(first []Plan) []BufferEnd {
	before := map[string]string{}
	for _, p := range first {
		if p.Kind == "CapacityBuffer" {
			before[p.Namespace+"/"+p.Name] = p.Why
		}
	}
	var all []BufferEnd
	for _, d := range w.plans.buffers.Decisions {
		b := d.After(w.now)
		ready := meta.FindStatusCondition(b.Status.Conditions, v1beta1.ConditionReady)
		all = append(all, BufferEnd{
			Namespace: b.Namespace, Name: b.Name, Chunks: d.Chunks, Placed: d.Placed, Ready: d.Ready, Pools: d.Pools,
			Reason: ready.Reason, Message: ready.Message, Same: before[keyOf(b)] == ready.Message,
		})
	}
	return all
}
