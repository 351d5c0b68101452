// SPDX-License-Identifier: Apache-2.0

// Package app is the extension as a function. Run ends when its context ends.
package app

import (
	"os"

	controllercmd "github.com/gardener/gardener/extensions/pkg/controller/cmd"
	heartbeatcmd "github.com/gardener/gardener/extensions/pkg/controller/heartbeat/cmd"
	webhookcmd "github.com/gardener/gardener/extensions/pkg/webhook/cmd"
	"github.com/spf13/pflag"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/internal/process"
	"github.com/evenkeel/evenkeel/gardener/pkg/webhook"
)

// name is what Gardener prefixes with gardener-extension-.
const name = v1alpha1.ExtensionType

// options are the flags of Gardener's extension library.
type options struct {
	general      *controllercmd.GeneralOptions
	rest         *controllercmd.RESTOptions
	manager      *controllercmd.ManagerOptions
	controller   *controllercmd.ControllerOptions
	reconciler   *controllercmd.ReconcilerOptions
	heartbeat    *heartbeatcmd.Options
	webhooks     *webhookcmd.AddToManagerOptions
	all          controllercmd.OptionAggregator
	printVersion bool
	images       webhook.Images
}

func newOptions() *options {
	namespace := os.Getenv("LEADER_ELECTION_NAMESPACE")
	o := &options{
		general:    &controllercmd.GeneralOptions{},
		rest:       &controllercmd.RESTOptions{},
		manager:    process.ManagerOptions(name, namespace),
		controller: &controllercmd.ControllerOptions{MaxConcurrentReconciles: 5},
		reconciler: &controllercmd.ReconcilerOptions{},
		heartbeat:  &heartbeatcmd.Options{ExtensionName: name, RenewIntervalSeconds: 30, Namespace: namespace},
	}
	server := &webhookcmd.ServerOptions{Namespace: os.Getenv("WEBHOOK_CONFIG_NAMESPACE")}
	o.webhooks = webhookcmd.NewAddToManagerOptions(name, "", nil, o.general, server, webhook.Switches(func() webhook.Images { return o.images }))
	o.all = controllercmd.NewOptionAggregator(o.general, o.rest, o.manager, o.controller, o.reconciler,
		controllercmd.PrefixOption("heartbeat-", o.heartbeat), o.webhooks)
	return o
}

// flags returns the flag set that fills the options when it is parsed.
func (o *options) flags() *pflag.FlagSet {
	flags := process.Flags("gardener-extension-evenkeel", o.all)
	flags.BoolVar(&o.printVersion, "version", false, "Print the version and exit.")
	return flags
}

// complete checks the flags, and reads the images.
func (o *options) complete() error {
	found, err := readImages()
	if err != nil {
		return err
	}
	o.images = found
	if err := o.heartbeat.Validate(); err != nil {
		return err
	}
	return o.all.Complete()
}
