// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// How many machines are served concurrently: each represents a computer of its own, but all share
// the API server.
const parallel = 8

// applyPlan carries the plan out.
func (d *Driver) applyPlan(ctx context.Context, p Plan) error {
	var steps []func() error
	for _, v := range p.Bury {
		steps = append(steps, func() error { return d.recordDeath(ctx, v) })
	}
	for _, v := range p.Register {
		steps = append(steps, func() error { return d.register(ctx, v) })
	}
	for _, c := range p.Change {
		steps = append(steps, func() error { return d.change(ctx, c) })
	}
	return atOnce(parallel, steps)
}

// atOnce takes the steps in order, several at a time, and joins their errors.
func atOnce(limit int, steps []func() error) error {
	errs := make([]error, len(steps))
	places := make(chan struct{}, limit)
	var running sync.WaitGroup
	for i, step := range steps {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			errs[i] = step()
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// register creates the Node, unless the machine was deleted in the meantime.
func (d *Driver) register(ctx context.Context, v VM) error {
	leave, err := d.turns.acquire(ctx, v.Name)
	if err != nil {
		return err
	}
	defer leave()
	if _, exists := d.fleet.latest(v); !exists {
		return nil
	}
	machine, err := d.Machines.Machines(d.Namespace).Get(ctx, v.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read taints of machine %s: %w", v.Name, err)
	}
	var taints []corev1.Taint
	if err == nil {
		taints = machine.Spec.NodeTemplateSpec.Spec.Taints
	}
	node := nodeOf(v, taints, d.faultOf(v), d.Clock.Now())
	_, err = d.Target.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // the watch will show whose it is
	}
	if err != nil {
		return fmt.Errorf("register node %s: %w", v.Name, err)
	}
	d.fleet.registered(v)
	klog.FromContext(ctx).V(2).Info("Registered node", "node", v.Name, "zone", v.Hardware.Zone)
	return nil
}

// recordDeath records that a machine has died.
func (d *Driver) recordDeath(ctx context.Context, v VM) error {
	leave, err := d.turns.acquire(ctx, v.Name)
	if err != nil {
		return err
	}
	defer leave()
	v, exists := d.fleet.latest(v)
	if !exists {
		return nil
	}
	v.Dead = true
	records := d.Control.CoreV1().ConfigMaps(d.Namespace)
	stored, err := records.Get(ctx, recordName(v.Name), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("mark machine %s as dead: %w", v.Name, err)
	}
	updated, err := recordOf(v, d.Namespace)
	if err != nil {
		return err
	}
	stored.Data = updated.Data
	if _, err := records.Update(ctx, stored, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("mark machine %s as dead: %w", v.Name, err)
	}
	d.fleet.put(v)
	klog.FromContext(ctx).V(2).Info("Machine died", "machine", v.Name)
	return nil
}

// change updates a Node. If kwok is to release the Node, the annotation is written first, because
// kwok would otherwise make the Node Ready again. If kwok is to take over, it is written last, so
// that an interrupted change is noticed and completed.
func (d *Driver) change(ctx context.Context, c Change) error {
	version := c.Node.ResourceVersion
	var err error
	if c.Kwok == KwokHeld {
		version, err = d.annotate(ctx, c, version)
	}
	if err == nil && len(c.Conditions) > 0 {
		version, err = d.report(ctx, c, version)
	}
	if err == nil && c.Kwok == KwokFake {
		_, err = d.annotate(ctx, c, version)
	}
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // the watch will show what it is now
		return fmt.Errorf("change node %s: %w", c.VM.Name, err)
	}
	return nil
}

func (d *Driver) annotate(ctx context.Context, c Change, version string) (string, error) {
	return d.sendPatch(ctx, c, types.MergePatchType, map[string]any{
		"metadata": map[string]any{"resourceVersion": version, "annotations": map[string]string{KwokAnnotation: c.Kwok}},
	})
}

func (d *Driver) report(ctx context.Context, c Change, version string) (string, error) {
	return d.sendPatch(ctx, c, types.StrategicMergePatchType, map[string]any{
		"metadata": map[string]any{"resourceVersion": version},
		"status":   map[string]any{"conditions": c.Conditions},
	}, "status")
}

func (d *Driver) sendPatch(ctx context.Context, c Change, kind types.PatchType, content map[string]any, subresources ...string) (string, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	node, err := d.Target.CoreV1().Nodes().Patch(ctx, c.VM.Name, kind, raw, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return "", err
	}
	klog.FromContext(ctx).V(2).Info("Changed node", "node", c.VM.Name, "patch", string(raw))
	return node.ResourceVersion, nil
}
