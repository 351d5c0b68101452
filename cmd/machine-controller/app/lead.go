// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
)

// retryPeriod is how often to retry what the start must wait for.
const retryPeriod = 2 * time.Second

// runLeader runs the cloud and the controller that uses it. After ctx has ended they write nothing
// more, and when runLeader returns nothing is in progress.
func (p *process) runLeader(ctx context.Context) error {
	p.Ready.Lead()
	return daemon.Together(ctx, p.Gate.Run, p.runProvider)
}

func (p *process) runProvider(ctx context.Context) error {
	clients, err := p.clients()
	if err != nil {
		return err
	}
	cloud, err := p.newCloud()
	if err != nil {
		return err
	}
	ready := retryUntil(ctx, "the machine API in the control cluster", func(ctx context.Context) error {
		_, err := connect.Within(ctx, func() (*metav1.APIResourceList, error) {
			return clients.control.Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
		})
		return err
	}) && retryUntil(ctx, "the records of virtual machines", cloud.LoadRecords)
	if !ready {
		return nil
	}
	return daemon.Together(ctx, cloud.Run, func(ctx context.Context) error { return p.runController(ctx, clients, cloud) })
}

// retryUntil tries until it succeeds; false if ctx ended first. It logs once what it is waiting
// for.
func retryUntil(ctx context.Context, what string, try func(context.Context) error) bool {
	for said := false; ; said = true {
		err := try(ctx)
		if err == nil {
			return true
		}
		if !said {
			klog.FromContext(ctx).Info("Waiting", "for", what, "err", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(retryPeriod):
		}
	}
}

// newCloud returns the virtual provider with clients of its own.
func (p *process) newCloud() (*virtual.Driver, error) {
	o := virtual.Options{Namespace: p.options.Namespace, Recorder: p.Recorder}
	var err error
	if o.Control, err = connect.Core(p.unlimited(p.control)); err != nil {
		return nil, fmt.Errorf("make cloud's control client: %w", err)
	}
	machines, err := versioned.NewForConfig(p.unlimited(p.control))
	if err != nil {
		return nil, fmt.Errorf("make cloud's machine client: %w", err)
	}
	o.Machines = machines.MachineV1alpha1()
	if p.target != nil {
		if o.Target, err = connect.Core(p.unlimited(p.target)); err != nil {
			return nil, fmt.Errorf("make cloud's target client: %w", err)
		}
	}
	return virtual.New(o), nil
}

// clients are MCM's.
type clients struct {
	machine versioned.Interface
	control kubernetes.Interface
	target  kubernetes.Interface // nil without a target cluster
}

func (p *process) clients() (clients, error) {
	var c clients
	var err error
	if c.machine, err = versioned.NewForConfig(p.behind(p.control)); err != nil {
		return clients{}, fmt.Errorf("make machine client: %w", err)
	}
	if c.control, err = connect.Core(p.behind(p.control)); err != nil {
		return clients{}, fmt.Errorf("make control client: %w", err)
	}
	if p.target == nil {
		return c, nil
	}
	if c.target, err = connect.Core(p.behind(p.target)); err != nil {
		return clients{}, fmt.Errorf("make target client: %w", err)
	}
	return c, nil
}
