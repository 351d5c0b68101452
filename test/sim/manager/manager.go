// SPDX-License-Identifier: Apache-2.0

// Package manager runs Evenkeel's manager on a simulated API server: machine-controller-manager's
// controllers look through the lens, and the machine-taint controller runs beside them, as in the
// binary. Only tests import it.
package manager

import (
	"context"
	"sync"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/lens"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/test/sim/mcm"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// Program returns the program of the process. It probes the target cluster.
func Program(o machinetaint.Options) storm.Program { return ProgramWith(o, nil) }

// Neighbor starts another controller of the process on its informers, which start after that.
type Neighbor func(p *Process, machines *stores.Informers, nodes *target.Informers) error

// ProgramWith returns the program of a process with another controller.
func ProgramWith(o machinetaint.Options, beside Neighbor) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		p := &Process{beside: beside}
		defer p.running.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		control, core := storm.Control(config), storm.Target(config)
		p.Client, p.Core = versioned.NewForConfigOrDie(control), kubernetes.NewForConfigOrDie(core)
		p.options = o
		p.options.Cluster = reachability.New("target", probe(p.Core), reachability.Options{})
		return mcm.RunControllers(ctx, control, core, p.lens)
	}
}

// Process is the lens with the controller that it needs.
type Process struct {
	*lens.Consistent
	// Client is a client of the control cluster, Core one of the target cluster.
	Client versioned.Interface
	Core   kubernetes.Interface
	Taint  *machinetaint.Controller

	ctx     context.Context
	options machinetaint.Options
	beside  Neighbor
	bound   machineinformers.Interface
	running sync.WaitGroup
}

// Target returns the probe of the target cluster.
func (p *Process) Target() *reachability.Cluster { return p.options.Cluster }

// Go runs a controller until the process ends.
func (p *Process) Go(run func(context.Context)) { p.running.Go(func() { run(p.ctx) }) }

// lens builds the lens, which asks the machine-taint controller. Bind starts that before there are
// questions.
func (p *Process) lens(ctx context.Context, inner stock.Interface) mcm.Lens {
	p.ctx = ctx
	shown := view.New(ctx, inner, view.Options{CreationOptions: view.CreationOptions{
		ReserveMark: func(c view.Creation) *v1alpha1.Reserve { return p.Taint.ReserveMark(c) },
		Seen:        func(version string) bool { return p.Taint.Seen(version) },
		Superfluous: func(c view.Creation) error { return p.Taint.Superfluous(c) },
		DeploymentOf: func(namespace string, m *mcmapi.Machine) (types.NamespacedName, bool) {
			return view.OwnedThrough(p.bound.MachineSets().Lister())(namespace, m)
		},
	}, Guards: view.Guards{
		Shrink: func(after *mcmapi.MachineSet) (func(*mcmapi.MachineSet, error), error) {
			return p.Taint.Guards().Shrink(after)
		},
		Remove: func(namespace, name string) (string, func(error), error) {
			return p.Taint.Guards().Remove(namespace, name)
		},
		Unname: func(before, after *mcmapi.MachineDeployment) error { return p.Taint.Guards().Unname(before, after) },
	}, Spares: func(d *mcmapi.MachineDeployment) view.Reserve { return p.Taint.Spares(d) }})
	p.Consistent = lens.New(ctx, shown, lens.Options{First: func(m *mcmapi.Machine) bool { return p.Taint.InReserve(m) }})
	return p
}

// Bind starts the machine-taint controller and waits until its informers are filled.
func (p *Process) Bind(in machineinformers.Interface) (machineinformers.Interface, error) {
	var err error
	if p.bound, err = p.Consistent.Bind(in); err != nil {
		return nil, err
	}
	machines, nodes := stores.New(p.Client, metav1.NamespaceAll), target.New(p.Core, nil)
	p.Taint, err = machinetaint.New(machinetaint.Clients{Machine: p.Client.MachineV1alpha1(), Target: p.Core},
		machinetaint.Informers{Machine: machines, Seen: p.bound, Target: nodes}, &record.FakeRecorder{}, p.options)
	if err != nil {
		return nil, err
	}
	if p.beside != nil {
		if err := p.beside(p, machines, nodes); err != nil {
			return nil, err
		}
	}
	machines.Start(p.ctx)
	nodes.Start(p.ctx)
	p.Go(func(ctx context.Context) { _ = p.options.Cluster.Run(ctx) })
	p.Go(func(ctx context.Context) {
		defer machines.Shutdown()
		defer nodes.Shutdown()
		p.Taint.Run(ctx)
	})
	cache.WaitFor(p.ctx, "", p.Taint.OwnStores()...)
	return p.bound, nil
}

// probe asks for no Node at all, which costs less than [reachability.Nodes] in a month of virtual
// time.
func probe(core kubernetes.Interface) reachability.Probe {
	return func(ctx context.Context) (string, error) {
		list, err := core.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=none"})
		if err != nil {
			return "", err
		}
		return list.ResourceVersion, nil
	}
}
