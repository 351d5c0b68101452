// SPDX-License-Identifier: Apache-2.0

package large

import (
	"errors"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/controller/balance"
	balanceplan "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/controller/release"
	releaseplan "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/similar"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// rounds is how often a decision about the whole cluster is measured.
const rounds = 10

// reserve has every MachineDeployment fill its reserve, which takes several plans, and then decides
// about all of them again.
func (f *fleet) reserve() (appears, rests *decisions, err error) {
	appears, rests = &decisions{name: "a reserve appears"}, &decisions{name: "a reserve at rest"}
	p, err := newPreview()
	if err != nil {
		return nil, nil, err
	}
	for steady := false; !steady; {
		if steady, err = f.decideAll(p, appears); err != nil {
			return nil, nil, err
		}
	}
	for range rounds {
		if _, err := f.decideAll(p, rests); err != nil {
			return nil, nil, err
		}
	}
	return appears, rests, nil
}

// newPreview returns the controller of MachineDeployments.
func newPreview() (*machinedeployment.Preview, error) {
	return machinedeployment.NewPreview(plan.Settings{ProtectInRollout: true, SafetyUp: 2, SafetyDown: 1}, machinetaint.Settings{}, true)
}

// decideAll decides about each MachineDeployment once, and applies the plans. steady reports whether
// they changed nothing but status.
func (f *fleet) decideAll(p *machinedeployment.Preview, d *decisions) (steady bool, err error) {
	err = p.SetObjects(machinedeployment.Objects{
		Deployments: f.deployments, Sets: f.sets, Machines: f.machines, Classes: []*mcm.MachineClass{f.class}, Nodes: f.nodes, Pods: f.pods,
	}, start)
	if err != nil {
		return false, err
	}
	steady = true
	for _, one := range slices.Clone(f.deployments) {
		var v plan.View
		var made plan.Plan
		d.measure(func() { v, made, _ = p.Plan(one.Namespace, one.Name) })
		after, err := p.After(v, made)
		if err != nil {
			return false, err
		}
		p.Remember(v, made)
		f.replaceObjects(after)
		made.DeploymentStatus, made.Statuses = nil, nil
		steady = steady && made.IsEmpty()
	}
	return steady, nil
}

// release has pods wait for which ten machines at least have to serve.
func (f *fleet) release() (*decisions, error) {
	d := &decisions{name: "100 pods wait"}
	p, err := release.NewPreview(releaseplan.Settings{
		Schedulers: releaseplan.DefaultSchedulers(), Cutoff: releaseplan.DefaultCutoff, Patience: releaseplan.DefaultPatience,
	})
	if err != nil {
		return nil, err
	}
	err = p.SetObjects(release.Objects{
		Deployments: f.deployments, Sets: f.sets, Machines: f.machines, MachineClasses: []*mcm.MachineClass{f.class},
		Nodes: f.nodes, Pods: slices.Concat(f.pods, waitingPods(100)),
	}, start)
	if err != nil {
		return nil, err
	}
	for range rounds {
		var plan releaseplan.Plan
		d.measure(func() { plan = p.Plan() })
		if len(plan.Raises) == 0 {
			return nil, errors.New("no machine was released")
		}
	}
	return d, nil
}

// balance compares all zones.
func (f *fleet) balance(name string) (*decisions, error) {
	d := &decisions{name: name}
	p, err := balance.NewPreview(fixture.Namespace, balanceplan.Settings{Enabled: true, Similar: similar.Defaults()}, true)
	if err != nil {
		return nil, err
	}
	err = p.SetObjects(balance.Objects{
		Deployments: f.deployments, Sets: f.sets, Machines: f.machines, Classes: []*mcm.MachineClass{f.class}, Nodes: f.nodes, Pods: f.pods,
	}, start)
	if err != nil {
		return nil, err
	}
	for range rounds {
		d.measure(func() { p.Plan() })
	}
	return d, nil
}
