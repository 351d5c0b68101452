// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"

	"github.com/gardener/gardener/extensions/pkg/controller/heartbeat"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/evenkeel/evenkeel/gardener/internal/process"
	"github.com/evenkeel/evenkeel/gardener/pkg/autoscaler"
	"github.com/evenkeel/evenkeel/gardener/pkg/extension"
	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/internal/version"
)

// Program is the process.
func Program() daemon.Program {
	o := newOptions()
	flags := o.flags()
	return daemon.Program{
		Name: "gardener-extension-evenkeel", Flags: flags, Help: func() { process.Usage(os.Stdout, usage, flags) },
		PrintVersion: &o.printVersion, Version: version.Line("gardener-extension-evenkeel"), Validate: o.complete, Run: o.run,
	}
}

const usage = `gardener-extension-evenkeel runs in a seed of Gardener. Shoots with the extension evenkeel run Evenkeel in place of
machine-controller-manager, with the reserves that their providerConfig requests. All other Shoots are left alone.

gardenlet installs it: see docs/gardener-extension.md. To run it outside of a cluster:

  gardener-extension-evenkeel --kubeconfig=seed.yaml --leader-election=false --heartbeat-namespace=default \
    --webhook-config-mode=url --webhook-config-url=127.0.0.1:10250
`

// uncached are kinds of which the process reads only a few objects. A cache would hold all objects
// of the seed.
var uncached = []client.Object{
	&appsv1.Deployment{}, &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &coordinationv1.Lease{}, &rbacv1.RoleBinding{}, &admissionregistrationv1.MutatingWebhookConfiguration{},
	&monitoringv1.PrometheusRule{}, &monitoringv1.ServiceMonitor{}, &extensionsv1alpha1.Worker{}, &resourcesv1alpha1.ManagedResource{},
}

// run works until ctx ends.
func (o *options) run(ctx context.Context) error {
	settings := process.ManagerSettings(o.manager.Completed())
	settings.Scheme = kubernetes.SeedScheme
	settings.Client.Cache = &client.CacheOptions{DisableFor: uncached}
	process.SetLogger(settings.Logger)
	mgr, err := manager.New(o.rest.Completed().Config, settings)
	if err != nil {
		return fmt.Errorf("make manager: %w", err)
	}
	if err := o.addTo(ctx, mgr); err != nil {
		return err
	}
	mgr.GetLogger().Info("Starting", "version", version.Short(), "images", o.images)
	return mgr.Start(ctx)
}

func (o *options) addTo(ctx context.Context, mgr manager.Manager) error {
	if err := extension.AddToManager(ctx, mgr, extension.Options{
		Controller: o.controller.Completed().Options(), IgnoreOperationAnnotation: o.reconciler.Completed().IgnoreOperationAnnotation,
		Classes: o.general.Completed().ExtensionClasses,
	}); err != nil {
		return fmt.Errorf("add controller: %w", err)
	}
	if err := autoscaler.AddToManager(mgr); err != nil {
		return fmt.Errorf("add controller of cluster-autoscaler: %w", err)
	}
	beat := o.heartbeat.Completed()
	if err := heartbeat.Add(mgr, heartbeat.AddArgs{
		ExtensionName: beat.ExtensionName, Namespace: beat.Namespace, RenewIntervalSeconds: beat.RenewIntervalSeconds, Clock: clock.RealClock{},
	}); err != nil {
		return fmt.Errorf("add heartbeat: %w", err)
	}
	if err := mgr.Add(watch{mgr.GetCache()}); err != nil {
		return fmt.Errorf("add watch of extensions: %w", err)
	}
	if _, err := o.webhooks.Completed().AddToManager(ctx, mgr, nil); err != nil {
		return fmt.Errorf("add webhooks: %w", err)
	}
	return process.AddChecks(mgr)
}

// watch has each replica watch Extensions before the first request comes to its webhooks. The manager
// waits for a watch that exists before it starts, also when it is to end.
type watch struct{ cache cache.Cache }

func (watch) NeedLeaderElection() bool { return false }

func (w watch) Start(ctx context.Context) error {
	_, err := w.cache.GetInformer(ctx, &extensionsv1alpha1.Extension{}, cache.BlockUntilSynced(false))
	return err
}
