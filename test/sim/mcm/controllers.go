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

// RunControllers runs the three controllers until ctx ends, with the defaults of their own binary.
func RunControllers(ctx context.Context, control, target *rest.Config) error {
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
	informers := machinefactory.NewSharedInformerFactoryWithOptions(machine, 12*time.Hour, machinefactory.WithNamespace(Namespace)).Machine().V1alpha1()
	nodes := coreinformers.NewSharedInformerFactory(targetCore, 12*time.Hour)
	c, err := controller.NewController(Namespace, machine.MachineV1alpha1(), controlCore, targetCore, nodes,
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
