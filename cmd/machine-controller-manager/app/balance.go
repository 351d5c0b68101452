// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/settings"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
)

// balanceName names the controller that keeps zones together.
const balanceName = "balance"

// BalanceOptions are the flags of the balance controller.
type BalanceOptions struct {
	// Enabled reports whether annotations and Mode affect replicas.
	Enabled bool
	Mode    string
	Similar settings.Similar
	// BootPatience is the controller's setting of the same name.
	BootPatience time.Duration
	PoolLabels   []string
	// Nodes contains bounds in cluster-autoscaler's format.
	Nodes []string
}

func (o *BalanceOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Enabled, "balance-similar-node-groups", true,
		"Balance similar MachineDeployments of different zones if their annotation or --balance-mode requests it. If false, annotations have no effect on replicas, and instant release does not prefer the smallest MachineDeployment; the excess of pools is still spread.")
	flags.StringVar(&o.Mode, "balance-mode", string(v1alpha1.BalanceOff),
		"Mode of MachineDeployments without the annotation "+v1alpha1.BalanceAnnotation+": Off, ScaleUp (split growth over zones) or Continuous (move replicas between zones, too).")
	flags.DurationVar(&o.BootPatience, "balance-boot-patience", 10*time.Minute,
		"How long a machine may take to become ready before its zone counts as failed and other zones get its growth. 0 means no limit.")
	flags.StringSliceVar(&o.PoolLabels, "pool-label", []string{"worker.gardener.cloud/pool"},
		"Label of MachineDeployments, or of their node templates, that names their pool. Repeatable; the first one that is set counts.")
	flags.StringArrayVar(&o.Nodes, "nodes", nil,
		"Bounds of a MachineDeployment that has none by annotation or by a Gardener Worker, as min:max:excess:namespace.name. The excess is optional and defaults to 0. Repeatable.")
	o.Similar.AddFlags(flags)
}

func (o *BalanceOptions) validate(namespace string) error {
	errs := []error{o.Similar.Validate()}
	if _, err := v1alpha1.ParseBalanceMode(o.Mode); err != nil {
		errs = append(errs, fmt.Errorf("--balance-mode: %w", err))
	}
	if o.BootPatience < 0 {
		errs = append(errs, errors.New("--balance-boot-patience: use a duration, or 0 for no limit"))
	}
	_, err := o.bounds(namespace)
	return errors.Join(append(errs, err)...)
}

// bounds returns the bounds of --nodes, by name.
func (o *BalanceOptions) bounds(namespace string) (map[string]v1alpha1.Bounds, error) {
	all := map[string]v1alpha1.Bounds{}
	for _, text := range o.Nodes {
		at, name, bounds, err := plan.ParseNodes(text)
		_, twice := all[name]
		switch {
		case err != nil:
			return nil, fmt.Errorf("--nodes: %w", err)
		case at != namespace:
			return nil, fmt.Errorf("--nodes: %q: this process manages only namespace %q (--namespace)", text, namespace)
		case twice:
			return nil, fmt.Errorf("--nodes: %q is set twice", name)
		}
		all[name] = bounds
	}
	return all, nil
}

func (o *BalanceOptions) settings(namespace string) (plan.Settings, error) {
	bounds, err := o.bounds(namespace)
	return plan.Settings{
		Enabled: o.Enabled, Mode: v1alpha1.BalanceMode(o.Mode), Similar: o.Similar.Options(), BootPatience: o.BootPatience,
		PoolLabels: o.PoolLabels, Bounds: bounds,
	}, err
}

// zoneSettings returns the settings of the balance controller.
func (p *process) zoneSettings() (plan.Settings, error) {
	s, err := p.options.Balance.settings(p.options.Namespace)
	s.Drain, s.Eviction, s.Unready = p.options.Reserve.Drain, p.options.Eviction.Rule(), p.options.Unready.UnreadyLimits
	return s, err
}

// runBalance runs the controller that keeps zones even.
func (p *process) runBalance(ctx context.Context) error {
	ours, err := machines.Evenkeel(p.control)
	if err != nil {
		return fmt.Errorf("make machine client: %w", err)
	}
	garden, err := dynamic.NewForConfig(p.control)
	if err != nil {
		return fmt.Errorf("make client for a Gardener's kinds: %w", err)
	}
	settings, err := p.zoneSettings()
	if err != nil {
		return err
	}
	if !connect.AwaitAPI(ctx, ours.Discovery(), machinev1alpha1.SchemeGroupVersion, apiRetry) {
		return nil
	}
	informers := balance.Informers{Machines: p.caches.machines, Target: p.caches.target}
	c, err := balance.New(balance.Clients{Machines: ours.MachineV1alpha1(), Garden: garden, Discovery: ours.Discovery()}, informers, p.Recorder,
		balance.Options{
			Namespace: p.options.Namespace, Settings: settings, Registerer: p.registry, Control: p.clusters.control, Target: p.clusters.target, Rights: p.rights,
			WorkersRead: p.caches.startAll,
		})
	if err != nil {
		return unlessEnding(ctx, err)
	}
	p.caches.startInformers(ctx)
	c.Run(ctx)
	return nil
}
