// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscalingv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	bufferv1beta1 "github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	evenkeelinformers "github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// caches contains the informers that all controllers of the process share.
type caches struct {
	machines *stores.Informers
	target   *target.Informers // nil without a target cluster
	// needed is closed when more of the target cluster than its Nodes is needed; see awaitReserves.
	needed chan struct{}
	once   sync.Once
}

func (p *process) newCaches() (*caches, error) {
	ours, err := machines.Evenkeel(p.control)
	if err != nil {
		return nil, fmt.Errorf("make machine client: %w", err)
	}
	all := &caches{machines: stores.New(ours, p.options.Namespace), needed: make(chan struct{})}
	if p.target == nil {
		return all, nil
	}
	core, err := connect.Core(p.target)
	if err != nil {
		return nil, fmt.Errorf("make target client: %w", err)
	}
	all.target = target.New(core, p.rights)
	return all, nil
}

// startInformers starts the informers that controllers asked for; of the target cluster only Nodes,
// until more is needed. They run until ctx ends.
func (c *caches) startInformers(ctx context.Context) {
	c.machines.Start(ctx)
	if c.target == nil {
		return
	}
	select {
	case <-c.needed:
		c.target.Start(ctx)
	default:
		c.target.StartNodes(ctx)
	}
}

// showingReserves requests the informers of objects that show whether there is a reserve.
func (c *caches) showingReserves() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{c.machines.Deployments(), c.machines.Machines(), c.target.Nodes()}
}

// startAll starts all informers of the target cluster that controllers request, from now on.
func (c *caches) startAll() { c.once.Do(func() { close(c.needed) }) }

// shutdown waits until all informers have ended.
func (c *caches) shutdown() {
	c.machines.Shutdown()
	if c.target != nil {
		c.target.Shutdown()
	}
}

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
	return slices.ContainsFunc([]string{mcmName, releaseName, balanceName}, p.picked)
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

// An API server may serve Reserves or CapacityBuffers to others, and not grant this process the
// right to read them: a seed of Gardener serves Reserves to all Shoots as soon as one of them has
// the extension.

// reservesRule is the right to read Reserves.
func reservesRule(namespace string) access.Rule {
	return access.Rule{
		Cluster: "control", Resource: autoscalingv1alpha1.SchemeGroupVersion.WithResource("reserves").GroupResource(), Namespace: namespace,
		Without: "Reserves have no effect. They also need the right to update reserves/status",
	}
}

// buffersRule is the right to read CapacityBuffers.
var buffersRule = access.Rule{
	Cluster: "target", Resource: bufferv1beta1.SchemeGroupVersion.WithResource("capacitybuffers").GroupResource(),
	Without: "CapacityBuffers have no effect. They also need the right to update capacitybuffers/status",
}

// requestsRule is the right to read ProvisioningRequests.
var requestsRule = access.Rule{
	Cluster: "target", Resource: provisioningv1.SchemeGroupVersion.WithResource("provisioningrequests").GroupResource(),
	Without: "ProvisioningRequests have no effect. They also need the right to update provisioningrequests/status",
}

// readReserves has a factory read the Reserves of a namespace once the process has the right.
func readReserves(factory evenkeelinformers.SharedInformerFactory, rights *access.Rights, namespace string) (cache.SharedIndexInformer, error) {
	informer := access.Informer(factory.InformerFor, rights, reservesRule(namespace), &autoscalingv1alpha1.Reserve{},
		func(c evenkeel.Interface) access.Reader[*autoscalingv1alpha1.ReserveList] {
			return c.AutoscalingV1alpha1().Reserves(namespace)
		})
	return informer, informer.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// readBuffers has a factory read CapacityBuffers once the process has the right.
func readBuffers(factory evenkeelinformers.SharedInformerFactory, rights *access.Rights) cache.SharedIndexInformer {
	return access.Informer(factory.InformerFor, rights, buffersRule, &bufferv1beta1.CapacityBuffer{},
		func(c evenkeel.Interface) access.Reader[*bufferv1beta1.CapacityBufferList] {
			return c.CapacityBufferV1beta1().CapacityBuffers(metav1.NamespaceAll)
		})
}

// readRequests has a factory read ProvisioningRequests once the process has the right.
func readRequests(factory evenkeelinformers.SharedInformerFactory, rights *access.Rights) cache.SharedIndexInformer {
	return access.Informer(factory.InformerFor, rights, requestsRule, &provisioningv1.ProvisioningRequest{},
		func(c evenkeel.Interface) access.Reader[*provisioningv1.ProvisioningRequestList] {
			return c.ProvisioningRequestV1().ProvisioningRequests(metav1.NamespaceAll)
		})
}

// awaitReserveRights returns when Reserves may be read, or cannot be for another reason, or ctx ends.
func awaitReserveRights(ctx context.Context, rights *access.Rights, ours evenkeel.Interface, namespace string) {
	_, _ = access.Await(ctx, rights, reservesRule(namespace), func() (*autoscalingv1alpha1.ReserveList, error) {
		return ours.AutoscalingV1alpha1().Reserves(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	})
}
