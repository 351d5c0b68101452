// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	machinetaintplan "github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// oracle asks the reserve's controller what it would do, now or after a change.
type oracle struct {
	objects    overview.Objects
	deployment *v1alpha1.MachineDeployment
	preview    *machinetaint.Preview
}

func newOracle(o overview.Objects, d *v1alpha1.MachineDeployment) (*oracle, error) {
	preview, err := machinetaint.NewPreview(machinetaintplan.Settings{
		Effects: []corev1.TaintEffect{corev1.TaintEffectNoSchedule}, SurplusPatience: machinetaint.DefaultSurplusPatience,
		BootPatience: o.BootLimit(), SafetyUp: safetyUp, Drain: o.Draining[d.Namespace], Unready: pool.DefaultUnreadyLimits(),
	}, !o.NodesUnknown && !o.PodsUnknown)
	if err != nil {
		return nil, fmt.Errorf("preview: %w", err)
	}
	return &oracle{o, d, preview}, nil
}

// safetyUp is machine-controller-manager's default.
const safetyUp = 2

// planWith returns the plan for a changed MachineDeployment.
func (o *oracle) planWith(change func(*v1alpha1.MachineDeployment)) (machinetaintplan.Plan, error) {
	d := o.deployment.DeepCopy()
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	change(d)
	deployments := slices.Clone(o.objects.Deployments)
	deployments[slices.Index(deployments, o.deployment)] = d
	err := o.preview.SetObjects(machinetaint.Objects{
		Deployments: deployments, Sets: o.objects.Sets, Machines: o.objects.Machines, Classes: o.objects.Classes,
		Nodes: o.objects.Nodes, Pods: o.objects.Pods, BudgetsUnknown: "they are not read here",
	}, o.objects.At)
	if err != nil {
		return machinetaintplan.Plan{}, fmt.Errorf("preview: %w", err)
	}
	_, plan, _ := o.preview.Plan(d.Namespace, d.Name)
	return plan, nil
}

func (o *oracle) currentPlan() (machinetaintplan.Plan, error) {
	return o.planWith(func(*v1alpha1.MachineDeployment) {})
}

// releases returns the machines in reserve in the order in which they would be released if replicas
// were raised.
func (o *oracle) releases() []string {
	all := o.objects
	s := pool.Read(o.deployment, pool.NewList(pool.Objects{Sets: all.Sets, Machines: all.Machines, Nodes: all.Nodes, Pods: all.Pods}), all.At)
	return reserve.ReleaseOrder(reserve.ViewOf(s), s.Workload+len(s.Machines))
}

// mostVictims limits how far ahead to look.
const mostVictims = 8

// victims returns the machines in the order in which they would be deleted if the excess were
// lowered, whatever requests it.
func (o *oracle) victims(z overview.Zone) ([]string, error) {
	var names []string
	for n := 1; n <= min(z.Excess, mostVictims); n++ {
		plan, err := o.planWith(func(d *v1alpha1.MachineDeployment) {
			delete(d.Annotations, v1alpha1.RequestedExcessAnnotation)
			d.Annotations[v1alpha1.ShareAnnotation] = strconv.Itoa(z.Excess - n)
		})
		if err != nil {
			return nil, err
		}
		for _, v := range plan.Rule.Victims {
			if !slices.Contains(names, v.Name) {
				names = append(names, v.Name)
			}
		}
	}
	return names, nil
}
