// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	strictjson "sigs.k8s.io/json"

	"github.com/evenkeel/evenkeel/internal/connect"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
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
		w.addNote("CapacityBuffers are omitted, because several namespaces have MachineDeployments, each with a manager of its own: select one with --namespace")
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

// isForBuffers reports whether CapacityBuffers need a Reserve.
func isForBuffers(r *autoscaling.Reserve) bool { return r.Labels[capacitybufferplan.OwnLabel] != "" }

// ReadReferences reads what the CapacityBuffers of Evenkeel refer to, and nothing if there are
// none.
func (c Clients) ReadReferences(ctx context.Context, o Objects) (Objects, error) {
	buffers := o.ourBuffers()
	if len(buffers) == 0 || c.Target == nil {
		return o, nil
	}
	r, found := &reading{ctx: ctx}, map[string]*[]*unstructured.Unstructured{}
	r.needed(true)
	for _, b := range buffers {
		for _, kind := range capacitybuffer.ReferenceKinds(b) {
			if found[kind] == nil {
				found[kind] = &[]*unstructured.Unstructured{}
				listInto(r, c.Target, capacitybuffer.ReferenceResource(kind), "", found[kind])
			}
		}
	}
	r.wait()
	slices.Sort(r.lines)
	o.Missing = slices.Concat(o.Missing, r.lines)
	var err error
	if o.References, err = referencesOf(found, r.unread); err != nil {
		return Objects{}, err
	}
	if slices.ContainsFunc(buffers, capacitybuffer.ReadsScale) {
		o.References.Scales, err = c.scales()
	}
	return o, err
}

func (o Objects) ourBuffers() []*v1beta1.CapacityBuffer {
	return slices.DeleteFunc(slices.Clone(o.Buffers), func(b *v1beta1.CapacityBuffer) bool { return !b.Reserved() })
}

// applyReferences applies the changes of what CapacityBuffers refer to.
func (o Objects) applyReferences() (Objects, error) {
	o.References.Objects = maps.Clone(o.References.Objects)
	if o.References.Objects == nil {
		o.References.Objects = map[string][]any{}
	}
	for _, c := range o.Referenced {
		kind := c.Kind.Kind
		needed := slices.ContainsFunc(o.ourBuffers(), func(b *v1beta1.CapacityBuffer) bool {
			return slices.Contains(capacitybuffer.ReferenceKinds(b), kind)
		})
		if !needed {
			return o, fmt.Errorf("change %s: nothing to predict, because no CapacityBuffer of Evenkeel refers to a %s", c, kind)
		}
		if why := o.References.Unread[kind]; why != "" {
			return o, fmt.Errorf("change %s: %s", c, why)
		}
		var err error
		if o.References.Objects[kind], err = changeReference(o.References.Objects[kind], c); err != nil {
			return o, fmt.Errorf("change %s: %w", c, err)
		}
	}
	return o, nil
}

// changeReference applies a change to objects of its kind.
func changeReference(objects []any, c Change) ([]any, error) {
	at := slices.IndexFunc(objects, func(o any) bool { return c.names(o.(metav1.Object)) })
	raw := c.raw
	if at >= 0 {
		var err error
		if _, raw, err = c.merge(objects[at]); err != nil {
			return nil, err
		}
	}
	after, err := scheme.Scheme.New(c.Kind)
	if err != nil {
		return nil, err
	}
	strict, err := strictjson.UnmarshalStrict(raw, after)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	if objects = slices.Clone(objects); at >= 0 {
		objects[at] = after
		return objects, nil
	}
	return append(objects, after), nil
}

// referencesOf returns objects by kind. Quotas that cannot be read limit nothing; a note reports
// that.
func referencesOf(found map[string]*[]*unstructured.Unstructured, unread map[string]string) (capacitybuffer.References, error) {
	all := capacitybuffer.References{Objects: map[string][]any{}, Unread: map[string]string{}}
	for kind, list := range found {
		resource := capacitybuffer.ReferenceResource(kind)
		if why := unread[resource.Resource]; why != "" && kind != capacitybuffer.KindQuota {
			all.Unread[kind] = fmt.Sprintf("the %s of the target cluster could not be read: %s", resource.Resource, why)
		}
		for _, u := range *list {
			object, err := scheme.Scheme.New(resource.GroupVersion().WithKind(kind))
			if err == nil {
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object)
			}
			if err != nil {
				return all, fmt.Errorf("read %s %s/%s: %w", kind, u.GetNamespace(), u.GetName(), err)
			}
			all.Objects[kind] = append(all.Objects[kind], object)
		}
	}
	return all, nil
}

// scales returns a reader of the scale subresources of the target cluster.
func (c Clients) scales() (*capacitybuffer.ScaleReader, error) {
	core, err := connect.Core(c.target)
	if err != nil {
		return nil, fmt.Errorf("connect to the target cluster: %w", err)
	}
	return capacitybuffer.NewScaleReader(c.target, core)
}
