// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	"github.com/evenkeel/evenkeel/internal/settings"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	balanceplan "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	machineplan "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
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
	machines                              machineplan.Settings
	release, zones, drain                 bool
	nodes, schedulers                     []string
	cutoff                                int32
	similar                               settings.Similar
	unready                               settings.Unready
	eviction                              settings.Eviction
	fleet                                 fleetOptions
}

func newPlan(o *options) *cobra.Command {
	p := &planOptions{options: o}
	c := &cobra.Command{
		Use:   "plan [-f change.yaml]",
		Short: "Preview what the controllers would do, now or after a change (read-only)",
		Long: `Preview what the controllers would do, now or after a change. The command is read-only.

It prints what each controller would write now, and the result: which machines serve, are in reserve or leave, how many machines
are created, and how many replicas each target has. The controllers' own code decides; machines and pods are simulated.

A change consists of one or more MachineDeployments, Balancers, FederatedHorizontalPodAutoscalers, Reserves or
CapacityBuffers, and of the workloads that CapacityBuffers refer to. Write apiVersion, kind, metadata.name and the fields to
change: the command merges them in memory as kubectl patch --type merge does. It rejects what the API server would reject.

Schedules do not advance: the result is that of the schedules that are active now.

The command reads the controllers' flags from the ConfigMap evenkeel-settings in the namespace of the MachineDeployments. The
flags of this command take precedence.`,
		Example: `  # What happens next
  kubectl evenkeel plan

  # What two more replicas would do
  echo '{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineDeployment","metadata":{"name":"pool-z1"},"spec":{"replicas":5}}' |
    kubectl evenkeel plan -f -

  # What a Reserve or a CapacityBuffer would do, before it is applied
  kubectl evenkeel plan -f reserve.yaml -f buffer.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.run(c.Context(), c.Flags()) },
	}
	p.addPlanFlags(c.Flags())
	complete(c, "output", "json", "yaml")
	return c
}

func (p *planOptions) run(ctx context.Context, flags *pflag.FlagSet) error {
	if p.output != "" && p.output != "json" && p.output != "yaml" {
		return fmt.Errorf("--output %q is invalid: use json or yaml, or omit it", p.output)
	}
	namespace, err := p.namespace()
	if err != nil {
		return err
	}
	if err := p.adoptManagerFlags(ctx, namespace, p.withManagerFlags(flags)); err != nil {
		return err
	}
	mode, err := v1alpha1.ParseBalanceMode(p.mode)
	if err != nil {
		return fmt.Errorf("--balance-mode: %w", err)
	}
	if err := errors.Join(settings.CheckAccounting(p.accounting), p.similar.Validate(), p.unready.Validate()); err != nil {
		return err
	}
	if err := p.fleet.complete(); err != nil {
		return err
	}
	changes, err := p.changes(ctx)
	if err != nil {
		return err
	}
	forecast, err := p.forecast(ctx, changes, mode)
	if err != nil {
		return err
	}
	return p.printForecast(forecast)
}

// changes returns the changes in all files.
func (p *planOptions) changes(ctx context.Context) ([]dryrun.Change, error) {
	if len(p.files) == 0 {
		return nil, nil
	}
	namespaces, err := p.documentNamespaces()
	if err != nil {
		return nil, err
	}
	var all []dryrun.Change
	for _, name := range p.files {
		changes, err := p.readChanges(ctx, name, namespaces)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		all = append(all, changes...)
	}
	return all, nil
}

// documentNamespaces returns the namespaces of the kubeconfigs.
func (p *planOptions) documentNamespaces() (n dryrun.Namespaces, err error) {
	if n.Control, _, err = p.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return n, fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	if n.Target = n.Control; p.target == "" || p.target == noTarget {
		return n, nil
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: p.target}, nil)
	if n.Target, _, err = loader.Namespace(); err != nil {
		return n, fmt.Errorf("read the namespace of the target kubeconfig: %w", err)
	}
	return n, nil
}

func (p *planOptions) readChanges(ctx context.Context, name string, namespaces dryrun.Namespaces) ([]dryrun.Change, error) {
	if name == "-" {
		return dryrun.ParseChanges(p.interruptibleInput(ctx), namespaces)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, errors.Unwrap(err) // which names the file, as the caller does
	}
	defer file.Close()
	return dryrun.ParseChanges(io.Reader(file), namespaces)
}

func (p *planOptions) forecast(ctx context.Context, changes []dryrun.Change, mode v1alpha1.BalanceMode) (dryrun.Forecast, error) {
	clients, err := p.readers()
	if err != nil {
		return dryrun.Forecast{}, err
	}
	namespace, err := p.namespace()
	if err != nil {
		return dryrun.Forecast{}, err
	}
	objects, err := clients.Read(ctx, namespace)
	if err != nil {
		return dryrun.Forecast{}, err
	}
	before := objects
	door, missing := clients.Validator(ctx, changes)
	objects.Missing = append(objects.Missing, missing...)
	for _, change := range changes {
		if namespace != "" && change.Namespace != namespace && !change.InTarget() {
			return dryrun.Forecast{}, fmt.Errorf("%s is not in namespace %s: use --namespace %s, or -A", change, namespace, change.Namespace)
		}
		if objects, err = objects.Apply(change, door); err != nil {
			return dryrun.Forecast{}, err
		}
	}
	if objects, err = clients.ReadReferences(ctx, objects); err != nil {
		return dryrun.Forecast{}, err
	}
	settings, err := p.settings(mode, objects.Garden)
	if err != nil {
		return dryrun.Forecast{}, err
	}
	forecast, err := dryrun.New(ctx, before, objects, settings, clients.BalancerClients())
	if err != nil {
		return dryrun.Forecast{}, err
	}
	return forecast, p.federate(ctx, clients, objects, &forecast)
}

// federate adds the results of federated autoscalers. If their clusters cannot be read, the rest of
// the preview is still made.
func (p *planOptions) federate(ctx context.Context, clients dryrun.Clients, objects dryrun.Objects, forecast *dryrun.Forecast) error {
	control, err := p.config.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace, _, err := p.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	previews, left, err := clients.Federate(ctx, control, p.fleet.forNamespace(namespace), objects.Federated)
	forecast.Notes = append(forecast.Notes, left...)
	if err != nil {
		forecast.Notes = append(forecast.Notes, "federated autoscalers are omitted: "+err.Error())
	}
	forecast.AddFederated(previews)
	return nil
}

// readers returns clients that cannot write.
func (p *planOptions) readers() (dryrun.Clients, error) {
	control, err := p.config.ToRESTConfig()
	if err != nil {
		return dryrun.Clients{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	switch p.target {
	case "":
		return dryrun.NewClients(control, control)
	case noTarget:
		return dryrun.NewClients(control, nil)
	}
	target, err := clientcmd.BuildConfigFromFlags("", p.target)
	if err != nil {
		return dryrun.Clients{}, fmt.Errorf("read the target kubeconfig: %w", err)
	}
	return dryrun.NewClients(control, target)
}

func (p *planOptions) printForecast(f dryrun.Forecast) error {
	switch p.output {
	case "json":
		raw, err := json.MarshalIndent(f, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the forecast: %w", err)
		}
		_, err = fmt.Fprintln(p.Out, string(raw))
		return err
	case "yaml":
		raw, err := yaml.Marshal(f)
		if err != nil {
			return fmt.Errorf("encode the forecast: %w", err)
		}
		_, err = fmt.Fprintln(p.Out, strings.TrimSpace(string(raw)))
		return err
	}
	return f.Print(p.Out, p.all)
}

func (p *planOptions) addPlanFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&p.files, "filename", "f", nil, "file with changes, or - for standard input; repeatable")
	flags.StringVarP(&p.output, "output", "o", "", "json or yaml; default: text")
	flags.BoolVar(&p.all, "show-all", false, "also print objects that do not change")
	flags.StringVar(&p.mode, "balance-mode", string(v1alpha1.BalanceOff), "as for the controllers")
	flags.StringVar(&p.accounting, "reserve-accounting", settings.AccountingAuto, "as for the controllers")
	flags.BoolVar(&p.drain, "drain-reserve", false, "as for the controllers")
	flags.BoolVar(&p.release, "instant-release", true, "as for the controllers")
	flags.BoolVar(&p.zones, "balance-similar-node-groups", true, "as for the controllers")
	flags.StringArrayVar(&p.nodes, "nodes", nil, "as for the controllers; repeatable")
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
	all.Int32Var(&p.machines.SafetyUp, "safety-up", 2, "")
	all.Int32Var(&p.machines.SafetyDown, "safety-down", 1, "")
	all.BoolVar(&p.machines.ProtectInRollout, "autoscaler-scaledown-annotation-during-rollout", true, "")
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
		Machines: p.machines,
		Reserve: machinetaint.Settings{
			SurplusPatience: p.surplus, Eviction: p.eviction.Rule(), BootPatience: p.bootReserve, Drain: p.drain, Unready: p.unready.UnreadyLimits,
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

// fleetOptions define, by the hub's flags, where the clusters of federated autoscalers are.
type fleetOptions struct {
	namespace, registry, providers string
	access                         federatedhpa.Access
	allowed                        []string
}

func (f *fleetOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.namespace, "federation-clusters-namespace", "", "as for the controllers; defaults to the namespace of this command")
	flags.StringVar(&f.registry, "federation-registry", federatedhpa.SecretRegistry, "as for the controllers: "+federatedhpa.SecretRegistry+" or "+federatedhpa.ProfileRegistry)
	flags.StringSliceVar(&f.allowed, "federation-allow-in-kubeconfigs", nil, "as for the controllers")
	flags.StringVar(&f.providers, "clusterprofile-provider-file", "", "as for the controllers; its programs run on this computer to get access to the clusters of ClusterProfiles. By default, none runs")
}

// complete reads the file with access programs.
func (f *fleetOptions) complete() error {
	if err := federatedhpa.Allowed(f.allowed).Validate(); err != nil {
		return fmt.Errorf("--federation-allow-in-kubeconfigs: %w", err)
	}
	switch {
	case !slices.Contains([]string{federatedhpa.SecretRegistry, federatedhpa.ProfileRegistry}, f.registry):
		return fmt.Errorf("--federation-registry: %q is invalid: use %s or %s", f.registry, federatedhpa.SecretRegistry, federatedhpa.ProfileRegistry)
	case f.providers == "":
		return nil
	case f.registry != federatedhpa.ProfileRegistry:
		return fmt.Errorf("--clusterprofile-provider-file needs --federation-registry=%s", federatedhpa.ProfileRegistry)
	}
	text, err := os.ReadFile(f.providers)
	if err == nil {
		f.access, err = federatedhpa.ReadAccess(text)
	}
	if err != nil {
		return fmt.Errorf("--clusterprofile-provider-file: %w", err)
	}
	return nil
}

// forNamespace returns the fleet of a command in a namespace.
func (f *fleetOptions) forNamespace(namespace string) dryrun.Fleet {
	return dryrun.Fleet{Namespace: cmp.Or(f.namespace, namespace), Profiles: f.registry == federatedhpa.ProfileRegistry, Access: f.access, Allowed: f.allowed}
}
