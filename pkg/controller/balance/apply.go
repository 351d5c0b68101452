// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
)

// apply writes what the plan changes, member by member. A member that cannot be written does not
// delay the others.
func (c *Controller) apply(ctx context.Context, v plan.View, p plan.Plan) error {
	var errs []error
	for i, o := range p.Outcomes {
		d := v.Members[i].Object
		if !o.Write.IsEmpty() {
			written, err := c.writeMember(ctx, d, o.Write)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			d = written
			c.metrics.moved(o.Moves)
			for _, n := range o.Events {
				c.recorder.Event(v1alpha1.ReferenceTo(d), corev1.EventTypeNormal, n.Reason, n.Message)
			}
		}
		errs = append(errs, c.report(ctx, d, o, p.Blocks[o.Name], v.Now))
	}
	c.metrics.planned(p)
	return errors.Join(errs...)
}

// writeMember patches a MachineDeployment as it was observed.
func (c *Controller) writeMember(ctx context.Context, d *v1alpha1.MachineDeployment, w plan.Write) (*v1alpha1.MachineDeployment, error) {
	written, err := c.sendPatch(ctx, d, mergePatch(d, w))
	if err != nil {
		return nil, fmt.Errorf("write MachineDeployment %s: %w", d.Name, err)
	}
	klog.FromContext(ctx).V(2).Info("Wrote", "machineDeployment", d.Name, "why", w.Why, "replicas", w.Replicas, "annotations", w.Annotations, "gone", w.Gone)
	return written, nil
}

func (c *Controller) sendPatch(ctx context.Context, d *v1alpha1.MachineDeployment, body map[string]any, subresources ...string) (*v1alpha1.MachineDeployment, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	written, err := c.clients.Machines.MachineDeployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, raw, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return nil, err
	}
	c.written.Record(written)
	return written, nil
}

// mergePatch returns a merge patch that takes effect only on this version.
func mergePatch(d *v1alpha1.MachineDeployment, w plan.Write) map[string]any {
	annotations := map[string]any{}
	for key, value := range w.Annotations {
		if annotations[key] = value; value == "" {
			annotations[key] = nil
		}
	}
	body := map[string]any{"metadata": map[string]any{"resourceVersion": d.ResourceVersion, "annotations": annotations}}
	spec := map[string]any{}
	if w.Replicas != nil {
		spec["replicas"] = *w.Replicas
	}
	if w.Excess != nil {
		spec["excessReplicas"] = *w.Excess
	}
	if len(spec) > 0 {
		body["spec"] = spec
	}
	return body
}

// report writes our conditions if they changed, and records an event for what is newly blocked.
func (c *Controller) report(ctx context.Context, d *v1alpha1.MachineDeployment, o plan.Outcome, blocked string, now time.Time) error {
	if d.DeletionTimestamp != nil {
		return nil
	}
	conditions, differs := plan.NewConditions(d.Status.Conditions, o.Conditions, metav1.NewTime(now))
	if !differs {
		return nil
	}
	_, err := c.sendPatch(ctx, d, map[string]any{
		"metadata": map[string]any{"resourceVersion": d.ResourceVersion},
		"status":   map[string]any{"conditions": conditions},
	}, "status")
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("write status of MachineDeployment %s: %w", d.Name, err)
	}
	if message := newlyBlocked(d.Status.Conditions, o.Conditions); blocked != "" && message != "" {
		c.metrics.blocked(blocked)
		c.recorder.Event(v1alpha1.ReferenceTo(d), corev1.EventTypeWarning, plan.EventBlocked, blocked+": "+message)
	}
	return nil
}

// newlyBlocked returns the message of the condition if replicas have become uneven and blocked
// since the last status.
func newlyBlocked(was []v1alpha1.MachineDeploymentCondition, wanted []plan.Condition) string {
	for _, w := range wanted {
		if w.Type != plan.ConditionBalanced || w.Status {
			continue
		}
		for _, c := range was {
			if c.Type == w.Type && c.Status == mcm.ConditionFalse && c.Reason == w.Reason {
				return ""
			}
		}
		return w.Message
	}
	return ""
}
