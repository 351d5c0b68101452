// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Most clusters have no reserve. Then nothing that this process decides depends on pods, volumes or
// DaemonSets, which are most of what a manager could read. They are read only once something of
// Evenkeel is found in the cluster or in the flags. The controllers exist before that, and wait for
// their caches. Once something is needed, it is read until the process ends.

// awaitReserves starts the informers of pods and related objects as soon as they matter.
func (p *process) awaitReserves(ctx context.Context) error {
	if p.target == nil || !p.readsPods() {
		<-ctx.Done()
		return nil
	}
	stop, err := p.lookForReserves()
	if err != nil && ctx.Err() == nil { // an informer that has ended accepts no handler
		return fmt.Errorf("look for reserves: %w", err)
	}
	select {
	case <-p.caches.needed:
		p.caches.target.Start(ctx)
	case <-ctx.Done():
	}
	stop()
	<-ctx.Done()
	return nil
}

// readsPods reports whether a selected controller reads pods.
func (p *process) readsPods() bool {
	return slices.ContainsFunc([]string{taintName, releaseName, balanceName}, p.picked)
}

// lookForReserves listens to informers until stop is called.
func (p *process) lookForReserves() (stop func(), err error) {
	if p.options.concernAll() {
		p.caches.startAll()
	}
	look := func(item any) {
		if concerns(item) {
			p.caches.startAll()
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, item any) { look(item) }}
	var errs []error
	var stops []func()
	for _, informer := range p.caches.showingReserves() {
		handle, err := informer.AddEventHandler(handler)
		errs = append(errs, err)
		stops = append(stops, func() { _ = informer.RemoveEventHandler(handle) }) // fails only without one
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}, errors.Join(errs...)
}

// concernAll reports whether flags affect MachineDeployments without any annotation or field of
// Evenkeel.
func (o *Options) concernAll() bool {
	return o.Reserve.Drain || o.Balance.Mode != string(api.BalanceOff) || len(o.Balance.Nodes) > 0
}

// concerns reports whether an API object requests a reserve or balance, or shows a trace of one.
func concerns(item any) bool {
	switch o := item.(type) {
	case *api.MachineDeployment:
		template := o.Spec.Template
		return o.Spec.ExcessReplicas != nil || o.Spec.ReserveWitness || o.Status.ExcessReplicas != 0 || o.Status.ReadyExcessReplicas != 0 ||
			slices.ContainsFunc(o.Status.Conditions, func(c mcm.MachineDeploymentCondition) bool { return !slices.Contains(stockConditions, c.Type) }) ||
			hasOurs(o.Annotations) || hasOurs(template.Annotations) || hasOurs(template.Spec.NodeTemplateSpec.Annotations)
	case *mcm.Machine:
		template := o.Spec.NodeTemplateSpec
		return hasOurs(o.Annotations) || hasOurs(template.Annotations) || pool.HasReserveTaint(template.Spec.Taints)
	case *corev1.Node:
		return hasOurs(o.Annotations) || pool.HasReserveTaint(o.Spec.Taints)
	}
	return false
}

// stockConditions are the conditions that machine-controller-manager writes.
var stockConditions = []mcm.MachineDeploymentConditionType{
	mcm.MachineDeploymentAvailable, mcm.MachineDeploymentProgressing, mcm.MachineDeploymentReplicaFailure, mcm.MachineDeploymentFrozen,
}

func hasOurs(annotations map[string]string) bool {
	for key := range annotations {
		if strings.HasPrefix(key, api.AnnotationPrefix) {
			return true
		}
	}
	return false
}
