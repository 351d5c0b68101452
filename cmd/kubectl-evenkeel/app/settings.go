// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	"github.com/evenkeel/evenkeel/internal/plugin/read"
	"github.com/evenkeel/evenkeel/internal/plugin/screen"
	"github.com/evenkeel/evenkeel/internal/settings"
	"github.com/evenkeel/evenkeel/internal/version"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// managerLeases are the leases that a process which publishes settings can hold. It holds one of them.
// Without machine-controller-manager's controllers, it runs beside the stock binary, which holds the
// first one.
var managerLeases = []string{"machine-controller-manager", "evenkeel"}

// adoptManagerFlags uses the flags of the manager that runs in a namespace, or in any if that is
// empty, and prints a note where that is not possible.
func (o *options) adoptManagerFlags(ctx context.Context, namespace string, flags *pflag.FlagSet) error {
	client, published, err := o.readPublications(ctx, namespace)
	switch {
	case err != nil:
		o.printNote("cannot read the settings of the manager, so flags and defaults apply: %v", err)
		return nil
	case len(published) > 1:
		o.printNote("found the settings of %d managers, so flags and defaults apply: select one with --namespace", len(published))
		return nil
	case len(published) == 0:
		return nil // a manager that does not publish: an older one, or one without the right to
	}
	o.noteSkew(version.Short(), settings.VersionOf(published[0]))
	unknown, err := settings.Adopt(flags, published[0])
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		o.printNote("this version of the plugin does not know these settings of the manager, and ignores them: %s", strings.Join(unknown, ", "))
	}
	writer, lead := published[0].Annotations[settings.Holder], holders(ctx, client, published[0].Namespace)
	if len(lead) > 0 && !slices.Contains(lead, writer) {
		o.printNote("the settings are of %s, but %s leads now, so they may be outdated", writer, strings.Join(lead, " or "))
	}
	return nil
}

func (o *options) printNote(format string, args ...any) {
	fmt.Fprintln(o.ErrOut, screen.Sanitize("Note: "+fmt.Sprintf(format, args...)+"."))
}

// shownSettings are the flags of managers that an overview depends on.
type shownSettings struct {
	// labels and alike decide which MachineDeployments are a pool.
	labels []string
	alike  similar.Options
	// patience is how long a machine may boot; 0 for the default.
	patience time.Duration
	// draining contains the namespaces whose managers give up all reserves.
	draining map[string]bool
}

// silence is how long a command waits for settings that it can do without.
const silence = 5 * time.Second

// shownSettings returns the flags of the running managers, except for labels that the user set. With
// an error about flags that cannot be read, and for all but --drain-reserve also where there are several
// managers, it returns defaults.
func (o *options) shownSettings(ctx context.Context) (shownSettings, error) {
	ctx, stop := context.WithTimeout(ctx, silence)
	defer stop()
	known := shownSettings{labels: o.poolLabels, alike: similar.Defaults(), draining: map[string]bool{}}
	namespace, err := o.namespace()
	if err != nil {
		return known, err
	}
	_, published, err := o.readPublications(ctx, namespace)
	if err != nil {
		return known, err
	}
	for _, one := range published {
		known.add(one, len(published) == 1)
	}
	return known, nil
}

// add adds the flags of a manager, all but --drain-reserve only if it is the only one. Flags that are
// invalid count as none.
func (s *shownSettings) add(published *corev1.ConfigMap, only bool) {
	var alike settings.Similar
	var labels []string
	var drain bool
	var patience time.Duration
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	alike.AddFlags(flags)
	flags.StringSliceVar(&labels, "pool-label", nil, "")
	flags.BoolVar(&drain, "drain-reserve", false, "")
	flags.DurationVar(&patience, "reserve-boot-patience", machinetaint.DefaultBootPatience, "")
	if _, err := settings.Adopt(flags, published); err != nil || alike.Validate() != nil {
		return
	}
	s.draining[published.Namespace] = drain
	if !only {
		return
	}
	if s.alike = alike.Options(); s.labels == nil && len(labels) > 0 {
		s.labels = labels
	}
	s.patience = cmp.Or(patience, math.MaxInt64) // 0 is no limit
}

// apply has an overview of objects show these settings.
func (s shownSettings) apply(o overview.Objects) overview.Objects {
	o.PoolLabels, o.Similar, o.BootPatience, o.Draining = s.labels, &s.alike, s.patience, s.draining
	return o
}

// readPublications returns the published settings of a namespace, or of all, and the client that has
// read them.
func (o *options) readPublications(ctx context.Context, namespace string) (dynamic.Interface, []*corev1.ConfigMap, error) {
	control, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	clients, err := dryrun.NewClients(control, nil)
	if err != nil {
		return nil, nil, err
	}
	published, err := publications(ctx, clients.Control, namespace)
	return clients.Control, published, err
}

// listPatience is how long one page of a list may take.
const listPatience = 20 * time.Second

// publications returns the published settings of a namespace, or of all.
func publications(ctx context.Context, client dynamic.Interface, namespace string) (all []*corev1.ConfigMap, err error) {
	configs := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps"))
	add := func(item runtime.Object) error {
		one, ok := item.(*unstructured.Unstructured)
		if !ok {
			return nil
		}
		config := &corev1.ConfigMap{}
		all = append(all, config)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(one.Object, config)
	}
	if namespace == "" {
		pages := read.Pages(listPatience, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return configs.List(ctx, o) })
		err = pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + settings.ConfigMap}, add)
		return all, err
	}
	one, err := configs.Namespace(namespace).Get(ctx, settings.ConfigMap, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	err = add(one)
	return all, err
}

// holders returns which processes lead, none if that cannot be read: many users may not read Leases.
func holders(ctx context.Context, client dynamic.Interface, namespace string) (all []string) {
	leases := client.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(namespace)
	for _, name := range managerLeases {
		lease, err := leases.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			continue
		}
		if holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity"); holder != "" {
			all = append(all, holder)
		}
	}
	return all
}

// settingsEvery is how often a command that runs for long reads the settings again: a manager may have
// started anew with other flags.
const settingsEvery = time.Minute

// followedSettings are the settings that were read last.
type followedSettings struct {
	latest  atomic.Pointer[shownSettings]
	running sync.WaitGroup
}

// followSettings reads the settings now, and again and again until ctx ends. While they cannot be
// read, the last ones count.
func (o *options) followSettings(ctx context.Context) *followedSettings {
	f := &followedSettings{}
	first, _ := o.shownSettings(ctx) // the defaults where they cannot be read
	f.latest.Store(&first)
	f.running.Go(func() {
		ticker := time.NewTicker(settingsEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if next, err := o.shownSettings(ctx); err == nil {
				f.latest.Store(&next)
			}
		}
	})
	return f
}

// apply has an overview of objects show the settings.
func (f *followedSettings) apply(o overview.Objects) overview.Objects {
	return f.latest.Load().apply(o)
}

// wait returns when everything that followSettings started has ended.
func (f *followedSettings) wait() { f.running.Wait() }
