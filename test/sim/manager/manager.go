// SPDX-License-Identifier: Apache-2.0

// Package manager runs Evenkeel's controller of MachineDeployments on simulated API servers, as the
// binary does. Only tests import it.
package manager

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// Program returns the program of the process. It probes both clusters.
func Program(s machinetaint.Settings) storm.Program { return ProgramWith(s, nil) }

// Neighbor starts another controller of the process on its informers, which start after that.
type Neighbor func(p *Process, machines *stores.Informers, nodes *target.Informers) error

// Process is the controller with what another one of the process needs.
type Process struct {
	// Client is a client of the control cluster, Core one of the target cluster.
	Client     versioned.Interface
	Core       kubernetes.Interface
	Controller *machinedeployment.Controller
	// Control and Target are the probes of the clusters.
	Control, Target *reachability.Cluster

	ctx     context.Context
	running sync.WaitGroup
}

// Go runs a controller until the process ends.
func (p *Process) Go(run func(context.Context)) { p.running.Go(func() { run(p.ctx) }) }

// ProgramWith returns the program of a process with another controller.
func ProgramWith(s machinetaint.Settings, beside Neighbor) storm.Program {
	if s.SurplusPatience == 0 {
		s.SurplusPatience = machinetaint.DefaultSurplusPatience
	}
	if len(s.Effects) == 0 {
		s.Effects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule}
	}
	return func(ctx context.Context, config *rest.Config) error {
		control, core := storm.Control(config), kubernetes.NewForConfigOrDie(storm.Target(config))
		client := versioned.NewForConfigOrDie(control)
		machines, nodes := stores.New(client, metav1.NamespaceAll), target.New(core, nil)
		near, far := world.ControlCluster(client), reachability.New("target", probe(core), reachability.Options{})
		c, err := machinedeployment.New(machinedeployment.Clients{Machines: client.MachineV1alpha1(), Target: core.CoreV1()},
			machinedeployment.Informers{Machines: machines, Target: nodes}, &record.FakeRecorder{}, machinedeployment.Options{
				Cluster: near, Target: far, Settings: plan.Settings{ProtectInRollout: true, SafetyUp: 2, SafetyDown: 1}, Reserve: s,
			})
		if err != nil {
			return err
		}
		p := &Process{Client: client, Core: core, Controller: c, Control: near, Target: far, ctx: ctx}
		defer p.running.Wait()
		if beside != nil {
			if err := beside(p, machines, nodes); err != nil {
				return err
			}
		}
		world.Process{Clusters: []*reachability.Cluster{near, far}, Informers: []world.Informers{machines, nodes}}.Run(ctx, c.Run)
		return nil
	}
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
