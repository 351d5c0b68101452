// SPDX-License-Identifier: Apache-2.0

// Package process is what the processes of the extension have in common.
package process

import (
	"errors"
	"fmt"
	"io"
	"sync"

	controllercmd "github.com/gardener/gardener/extensions/pkg/controller/cmd"
	gardenerhealthz "github.com/gardener/gardener/pkg/healthz"
	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// loopback is where a process listens by default. In a pod, the chart says otherwise.
const loopback = "127.0.0.1"

// ManagerOptions are the defaults of the library's flags of the same name.
func ManagerOptions(name, namespace string) *controllercmd.ManagerOptions {
	return &controllercmd.ManagerOptions{
		LeaderElection: true, LeaderElectionID: controllercmd.LeaderElectionNameID(name), LeaderElectionNamespace: namespace,
		WebhookServerHost: loopback, WebhookServerPort: 10250, WebhookCertDir: "/tmp/" + name + "-certificates",
	}
}

// Flags returns the flag set that fills options when it is parsed. Metrics and health, which the
// library serves on all addresses by default, are on loopback.
func Flags(program string, options controllercmd.OptionAggregator) *pflag.FlagSet {
	flags := pflag.NewFlagSet(program, pflag.ContinueOnError)
	flags.Usage = func() {} // printed by the caller
	options.AddFlags(flags)
	setDefault(flags.Lookup(controllercmd.MetricsBindAddressFlag), loopback+":8080")
	setDefault(flags.Lookup(controllercmd.HealthBindAddressFlag), loopback+":8081")
	return flags
}

func setDefault(flag *pflag.Flag, value string) {
	flag.DefValue = value
	if err := flag.Value.Set(value); err != nil {
		panic(err) // a text is always valid
	}
}

var klogOnce sync.Once

// SetLogger has all libraries write to one logger, in one form, which the parser of Gardener for
// extensions reads.
func SetLogger(logger logr.Logger) {
	log.SetLogger(logger)
	klogOnce.Do(func() { klog.SetLogger(logger) }) // not safe while something is logged
}

// Usage prints how to use a program.
func Usage(w io.Writer, text string, flags *pflag.FlagSet) {
	fmt.Fprintf(w, "%s\nFlags:\n%s", text, flags.FlagUsagesWrapped(120))
}

// AddChecks has a manager report whether it lives, and whether it answers webhooks.
func AddChecks(mgr manager.Manager) error {
	return errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("informers", gardenerhealthz.NewCacheSyncHealthz(mgr.GetCache())),
		mgr.AddReadyzCheck("webhook-server", mgr.GetWebhookServer().StartedChecker()),
	)
}
