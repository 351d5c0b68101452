// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

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
	"github.com/evenkeel/evenkeel/internal/sim/mcm"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	ours "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/lens"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
)

// program runs machine-controller-manager's controllers through the lens with ours beside them, as the binary does.
func program(o machinetaint.Options) storm.Program { return programWith(o, nil) }

// programWith runs another controller beside it.
func programWith(o machinetaint.Options, beside neighbor) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		var running sync.WaitGroup
		defer running.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return mcm.RunControllers(ctx, storm.Control(config), storm.Target(config), func(ctx context.Context, inner stock.Interface) mcm.Lens {
			return (&together{inner: inner, ctx: ctx, config: config, options: o, beside: beside, running: &running}).look()
		})
	}
}

// neighbor starts another controller of the process on the same informers.
type neighbor func(t *together, machines *stores.Informers, nodes *target.Informers) error

// together is the whole lens with the controller that it needs.
type together struct {
	*lens.Consistent
	inner   stock.Interface
	ctx     context.Context
	config  *rest.Config
	options machinetaint.Options
	beside  neighbor
	running *sync.WaitGroup
	taint   *machinetaint.Controller
	client  ours.Interface
	core    kubernetes.Interface
	bound   machineinformers.Interface
}

func (t *together) Bind(in machineinformers.Interface) (machineinformers.Interface, error) {
	var err error
	if t.bound, err = t.Consistent.Bind(in); err != nil {
		return nil, err
	}
	client, core := ours.NewForConfigOrDie(storm.Control(t.config)), kubernetes.NewForConfigOrDie(storm.Target(t.config))
	t.client, t.core = client, core
	machines, nodes := stores.New(client, metav1.NamespaceAll), target.New(core, nil)
	t.options.Cluster = reachability.New("target", probe(core), reachability.Options{})
	t.taint, err = machinetaint.New(machinetaint.Clients{Machine: client.MachineV1alpha1(), Target: core},
		machinetaint.Informers{Machine: machines, Seen: t.bound, Target: nodes},
		&record.FakeRecorder{}, t.options)
	if err != nil {
		return nil, err
	}
	if t.beside != nil {
		if err := t.beside(t, machines, nodes); err != nil {
			return nil, err
		}
	}
	machines.Start(t.ctx)
	nodes.Start(t.ctx)
	t.running.Go(func() { _ = t.options.Cluster.Run(t.ctx) })
	t.running.Go(func() {
		defer machines.Shutdown()
		defer nodes.Shutdown()
		t.taint.Run(t.ctx)
	})
	cache.WaitFor(t.ctx, "", t.taint.OwnStores()...)
	return t.bound, nil
}

// probe asks for no Node at all, which costs less than reachability.Nodes in a month of virtual time.
func probe(target kubernetes.Interface) reachability.Probe {
	return func(ctx context.Context) (string, error) {
		list, err := target.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=none"})
		if err != nil {
			return "", err
		}
		return list.ResourceVersion, nil
	}
}

// look builds the lens; births ask the controller, which is there before the first.
func (t *together) look() *together {
	shown := view.New(t.ctx, t.inner, view.Options{CreationOptions: view.CreationOptions{
		ReserveMark: func(b view.Creation) *api.Reserve { return t.taint.ReserveMark(b) },
		Seen:        func(version string) bool { return t.taint.Seen(version) },
		Superfluous: func(b view.Creation) error { return t.taint.Superfluous(b) },
		DeploymentOf: func(namespace string, m *mcmapi.Machine) (types.NamespacedName, bool) {
			return view.OwnedThrough(t.bound.MachineSets().Lister())(namespace, m)
		},
	}, Guards: view.Guards{
		Shrink: func(after *mcmapi.MachineSet) (func(*mcmapi.MachineSet, error), error) {
			return t.taint.Guards().Shrink(after)
		},
		Remove: func(namespace, name string) (string, func(error), error) {
			return t.taint.Guards().Remove(namespace, name)
		},
	}, Spares: func(d *mcmapi.MachineDeployment) ([]view.Spare, int32) { return t.taint.Spares(d) }})
	t.Consistent = lens.New(t.ctx, shown, lens.Options{First: func(m *mcmapi.Machine) bool { return t.taint.InReserve(m) }})
	return t
}
