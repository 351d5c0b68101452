// SPDX-License-Identifier: Apache-2.0

// Package app is the admission component as a function. Run ends when its context ends.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	controllercmd "github.com/gardener/gardener/extensions/pkg/controller/cmd"
	webhookcmd "github.com/gardener/gardener/extensions/pkg/webhook/cmd"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/evenkeel/evenkeel/gardener/internal/process"
	"github.com/evenkeel/evenkeel/gardener/pkg/admission"
	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/internal/version"
)

const (
	// name is what Gardener prefixes with gardener-extension-.
	name    = "admission-evenkeel"
	program = "gardener-extension-" + name
)

const usage = program + ` checks the providerConfig of Shoots with the extension evenkeel, in the garden cluster. It
has two API servers: that of the virtual garden, by --kubeconfig or $GARDEN_KUBECONFIG, has the Shoots, and that of the cluster
in which it runs has its lease and its certificates. Outside of a cluster, the first has them, too.

gardener-operator installs it: see docs/gardener-extension.md. To run it outside of a cluster:

  ` + program + ` --kubeconfig=garden.yaml --leader-election=false \
    --webhook-config-mode=url --webhook-config-url=127.0.0.1:10250
`

// options are the flags of Gardener's extension library.
type options struct {
	rest         *controllercmd.RESTOptions
	manager      *controllercmd.ManagerOptions
	webhooks     *webhookcmd.AddToManagerOptions
	all          controllercmd.OptionAggregator
	printVersion bool
}

// Program is the process.
func Program() daemon.Program {
	o := &options{rest: &controllercmd.RESTOptions{}, manager: process.ManagerOptions(name, os.Getenv("LEADER_ELECTION_NAMESPACE"))}
	server := &webhookcmd.ServerOptions{Namespace: os.Getenv("WEBHOOK_CONFIG_NAMESPACE")}
	o.webhooks = webhookcmd.NewAddToManagerOptions(name, "", nil, &controllercmd.GeneralOptions{}, server, admission.Switches())
	o.all = controllercmd.NewOptionAggregator(o.rest, o.manager, o.webhooks)
	flags := process.Flags(program, o.all)
	flags.BoolVar(&o.printVersion, "version", false, "Print the version and exit.")
	return daemon.Program{
		Name: program, Flags: flags, Help: func() { process.Usage(os.Stdout, usage, flags) },
		PrintVersion: &o.printVersion, Version: version.Line(program), Validate: o.complete, Run: o.run,
	}
}

func (o *options) complete() error {
	o.rest.Kubeconfig = cmp.Or(o.rest.Kubeconfig, os.Getenv("GARDEN_KUBECONFIG"))
	return o.all.Complete()
}

// run works until ctx ends.
func (o *options) run(ctx context.Context) error {
	settings := process.ManagerSettings(o.manager.Completed())
	settings.Scheme = kubernetes.GardenScheme
	settings.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{
		&corev1.Namespace{}, &corev1.Secret{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
	}}
	process.SetLogger(settings.Logger)
	runtimeConfig, err := rest.InClusterConfig()
	if err != nil && !errors.Is(err, rest.ErrNotInCluster) {
		return fmt.Errorf("read access to the runtime cluster: %w", err)
	}
	settings.LeaderElectionConfig = runtimeConfig
	mgr, err := manager.New(o.rest.Completed().Config, settings)
	if err != nil {
		return fmt.Errorf("make manager: %w", err)
	}
	source, err := addRuntimeCluster(mgr, runtimeConfig)
	if err != nil {
		return err
	}
	if _, err := o.webhooks.Completed().AddToManager(ctx, mgr, source); err != nil {
		return fmt.Errorf("add webhook: %w", err)
	}
	if err := process.AddChecks(mgr); err != nil {
		return err
	}
	mgr.GetLogger().Info("Starting", "version", version.Short())
	return mgr.Start(ctx)
}

// addRuntimeCluster returns the cluster with the certificates; nil if it is that of the manager.
func addRuntimeCluster(mgr manager.Manager, config *rest.Config) (cluster.Cluster, error) {
	if config == nil {
		return nil, nil
	}
	source, err := cluster.New(config, func(o *cluster.Options) {
		o.Logger = mgr.GetLogger()
		o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the runtime cluster: %w", err)
	}
	return source, mgr.Add(source)
}
