// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

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

// Direct returns the program of a process whose own controller runs MachineDeployments with their
// reserve, in place of machine-controller-manager's.
func Direct(o machinetaint.Options) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		control, core := storm.Control(config), kubernetes.NewForConfigOrDie(storm.Target(config))
		client := versioned.NewForConfigOrDie(control)
		machines, nodes := stores.New(client, metav1.NamespaceAll), target.New(core, nil)
		settings := o.Settings
		if settings.SurplusPatience == 0 {
			settings.SurplusPatience = machinetaint.DefaultSurplusPatience
		}
		if len(settings.Effects) == 0 {
			settings.Effects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule}
		}
		far := reachability.New("target", probe(core), reachability.Options{})
		near := world.ControlCluster(client)
		c, err := machinedeployment.New(machinedeployment.Clients{Machines: client.MachineV1alpha1(), Target: core.CoreV1()},
			machinedeployment.Informers{Machines: machines, Target: nodes}, &record.FakeRecorder{}, machinedeployment.Options{
				Cluster: near, Target: far, Settings: plan.Settings{ProtectInRollout: true, SafetyUp: 2, SafetyDown: 1}, Reserve: &settings,
			})
		if err != nil {
			return err
		}
		world.Process{Clusters: []*reachability.Cluster{near, far}, Informers: []world.Informers{machines, nodes}}.Run(ctx, c.Run)
		return nil
	}
}
