// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	"github.com/evenkeel/evenkeel/internal/settings"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	balanceplan "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	machinetaintplan "github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	releaseplan "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// planOptions are the options of plan.
type planOptions struct {
	*options
	files  []string
	output string
	all    bool
	// The values of the controllers' flags of the same names.
	mode, accounting                      string
	surplus, bootReserve, bootZones, pods time.Duration
	safetyUp                              int
	release, zones, drain                 bool
	nodes, schedulers                     []string
	cutoff                                int32
	similar                               settings.Similar
	unready                               settings.Unready
	eviction                              settings.Eviction
	fleet                                 fleetOptions
}

func (p *planOptions) addPlanFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&p.files, "filename", "f", nil, "file with changes, or - for standard input; repeatable")
	flags.StringVarP(&p.output, "output", "o", "", "json or yaml; text by default")
	flags.BoolVar(&p.all, "show-all", false, "also print objects at rest")
	flags.StringVar(&p.mode, "balance-mode", string(v1alpha1.BalanceOff), "the value of the controllers' flag")
	flags.StringVar(&p.accounting, "reserve-accounting", settings.AccountingAuto, "the value of the controllers' flag")
	flags.BoolVar(&p.drain, "drain-reserve", false, "the value of the controllers' flag")
	flags.BoolVar(&p.release, "instant-release", true, "the value of the controllers' flag")
	flags.BoolVar(&p.zones, "balance-similar-node-groups", true, "the value of the controllers' flag")
	flags.StringArrayVar(&p.nodes, "nodes", nil, "the value of the controllers' flag; repeatable")
	p.fleet.addFlags(flags)
}

// withManagerFlags returns the flags of the command, and those that a manager alone has: its
// published values count, and its defaults where it publishes none.
func (p *planOptions) withManagerFlags(flags *pflag.FlagSet) *pflag.FlagSet {
	all := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	all.AddFlagSet(flags)
	all.DurationVar(&p.surplus, "surplus-patience", machinetaint.DefaultSurplusPatience, "")
	all.DurationVar(&p.bootReserve, "reserve-boot-patience", machinetaint.DefaultBootPatience, "")
	all.DurationVar(&p.bootZones, "balance-boot-patience", 10*time.Minute, "")
	all.DurationVar(&p.pods, "release-patience", releaseplan.DefaultPatience, "")
	all.IntVar(&p.safetyUp, "safety-up", 2, "")
	all.StringSliceVar(&p.schedulers, "release-schedulers", releaseplan.DefaultSchedulers(), "")
	all.Int32Var(&p.cutoff, "release-priority-cutoff", releaseplan.DefaultCutoff, "")
	p.similar.AddFlags(all)
	p.unready.AddFlags(all)
	p.eviction.AddFlags(all)
	return all
}

// settings returns the settings of the controllers. Garden reports whether the control cluster is a
// Gardener's.
func (p *planOptions) settings(mode v1alpha1.BalanceMode, garden bool) (dryrun.Settings, error) {
	bounds := map[string]v1alpha1.Bounds{}
	for _, text := range p.nodes {
		_, name, of, err := balanceplan.ParseNodes(text)
		if err != nil {
			return dryrun.Settings{}, fmt.Errorf("--nodes: %w", err)
		}
		bounds[name] = of
	}
	labels := p.poolLabels
	if labels == nil {
		labels = []string{overview.DefaultPoolLabel}
	}
	return dryrun.Settings{
		Reserve: machinetaintplan.Settings{
			SurplusPatience: p.surplus, Eviction: p.eviction.Rule(), BootPatience: p.bootReserve, SafetyUp: p.safetyUp, Drain: p.drain, Unready: p.unready.UnreadyLimits,
			Accounting: func(d *v1alpha1.MachineDeployment) v1alpha1.Accounting { return p.accountingOf(d, garden) },
		},
		Zones: balanceplan.Settings{
			Enabled: p.zones, Mode: mode, Similar: p.similar.Options(), BootPatience: p.bootZones, PoolLabels: labels, Bounds: bounds, Drain: p.drain,
			Eviction: p.eviction.Rule(), Unready: p.unready.UnreadyLimits,
		},
		Instant: p.release,
		Release: releaseplan.Settings{
			Schedulers: p.schedulers, Cutoff: p.cutoff, Patience: p.pods, Even: p.zones, Similar: p.similar.Options(), PoolLabels: labels,
		},
	}, nil
}

// accountingOf returns where the reserve of a MachineDeployment is counted by default. The flag of a
// manager that does not publish it may differ, so a reserve that exists stays where it is counted,
// unless a flag says otherwise.
func (p *planOptions) accountingOf(d *v1alpha1.MachineDeployment, garden bool) v1alpha1.Accounting {
	applied := pool.AppliedOf(d, d.Spec.Replicas)
	switch {
	case p.accounting != settings.AccountingAuto || applied.Excess == 0:
		return settings.Accounting(p.accounting, garden, d)
	case applied.Included():
		return v1alpha1.AccountingInclusive
	}
	return v1alpha1.AccountingAdditive
}
