// SPDX-License-Identifier: Apache-2.0

package mcm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machinefactory "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/controller"
	mcmoptions "github.com/gardener/machine-controller-manager/pkg/options"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// Namespace holds the machines.
const Namespace = "default"

// workers per queue.
const workers = 5

// Lens is what the controllers can look through: a clientset, and the informers that were built on
// it.
type Lens interface {
	versioned.Interface
	Bind(machineinformers.Interface) (machineinformers.Interface, error)
}

// RunControllers runs the three controllers until ctx ends, with the defaults of their own binary.
// Without wrap, they get plain clients.
func RunControllers(ctx context.Context, control, target *rest.Config, wrap func(context.Context, versioned.Interface) Lens) error {
	machine, err := versioned.NewForConfig(control)
	if err != nil {
		return fmt.Errorf("make machine client: %w", err)
	}
	controlCore, err := kubernetes.NewForConfig(control)
	if err != nil {
		return fmt.Errorf("make control client: %w", err)
	}
	targetCore, err := kubernetes.NewForConfig(target)
	if err != nil {
		return fmt.Errorf("make target client: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, informers, err := wrapClients(ctx, machine, wrap)
	if err != nil {
		return err
	}
	nodes := coreinformers.NewSharedInformerFactory(targetCore, 12*time.Hour)
	c, err := controller.NewController(Namespace, client.MachineV1alpha1(), controlCore, targetCore, nodes,
		informers.Machines(), informers.MachineSets(), informers.MachineDeployments(), &record.FakeRecorder{}, safety(), true)
	if err != nil {
		return fmt.Errorf("make controllers: %w", err)
	}
	started := startInformers(ctx, nodes, informers)
	defer started()
	return runController(ctx, c)
}

func safety() mcmoptions.SafetyOptions {
	return mcmoptions.SafetyOptions{SafetyUp: 2, SafetyDown: 1, MachineSafetyOvershootingPeriod: metav1.Duration{Duration: time.Minute}}
}

// wrapClients returns the client and the informers that the controllers get.
func wrapClients(ctx context.Context, plain versioned.Interface, wrap func(context.Context, versioned.Interface) Lens) (versioned.Interface, machineinformers.Interface, error) {
	if wrap == nil {
		factory := machinefactory.NewSharedInformerFactoryWithOptions(plain, 12*time.Hour, machinefactory.WithNamespace(Namespace))
		return plain, factory.Machine().V1alpha1(), nil
	}
	lens := wrap(ctx, plain)
	factory := machinefactory.NewSharedInformerFactoryWithOptions(lens, 12*time.Hour, machinefactory.WithNamespace(Namespace))
	bound, err := lens.Bind(factory.Machine().V1alpha1())
	if err != nil {
		return nil, nil, fmt.Errorf("bind informers: %w", err)
	}
	return lens, bound, nil
}

// startInformers runs the informers until ctx ends. The returned function waits until they have
// ended.
func startInformers(ctx context.Context, nodes coreinformers.SharedInformerFactory, machines machineinformers.Interface) func() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var all []func(<-chan struct{})
		all = append(all, machines.Machines().Informer().Run, machines.MachineSets().Informer().Run, machines.MachineDeployments().Informer().Run)
		together(ctx.Done(), all)
	}()
	nodes.Start(ctx.Done())
	return func() {
		<-ended
		nodes.Shutdown()
	}
}

func together(stop <-chan struct{}, all []func(<-chan struct{})) {
	done := make(chan struct{})
	for _, one := range all {
		go func() {
			one(stop)
			done <- struct{}{}
		}()
	}
	for range all {
		<-done
	}
}

// runController runs the controllers until ctx ends and all their goroutines have ended.
func runController(ctx context.Context, c controller.Controller) error {
	tolerateManyControllers()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(workers, ctx.Done())
	}()
	select {
	case <-ended:
		Dismantle(c)
		if ctx.Err() == nil {
			return errors.New("controllers ended by themselves")
		}
	case <-ctx.Done():
		Dismantle(c)
		<-ended
	}
	return nil
}
