// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/keep"
	"github.com/evenkeel/evenkeel/internal/settings"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
)

// taintName is the name of the machine-taint controller.
const taintName = "machinetaint"

// taintWorkers is how many MachineDeployments' reserves are processed concurrently: a sync waits for
// answers most of the time.
const taintWorkers = 20

// ReserveOptions are the flags of the machine-taint controller.
type ReserveOptions struct {
	// TaintEffects of the reserve taint.
	TaintEffects []string
	// SurplusPatience and BootPatience are the controller's settings of the same names.
	SurplusPatience, BootPatience time.Duration
	// Accounting is where reserves are counted: auto, additive or inclusive.
	Accounting string
	// Drain gives up every reserve.
	Drain bool
}

func (o *ReserveOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.TaintEffects, "reserve-taint-effects", []string{string(corev1.TaintEffectNoSchedule)},
		"Effects of the taint that keeps workload away from reserve machines: NoSchedule, or NoSchedule,NoExecute.")
	flags.DurationVar(&o.SurplusPatience, "surplus-patience", keep.DefaultSurplusPatience,
		"How long more machines than replicas may serve while none of them is empty, for example after a machine has recovered. After that, the emptiest machine is drained.")
	flags.DurationVar(&o.BootPatience, "reserve-boot-patience", keep.DefaultBootPatience,
		"How long a reserve machine may take to become ready. After that, the reserve continues without it and tries again later. Must be less than --machine-creation-timeout of the machine controller. 0 means no limit.")
	flags.StringVar(&o.Accounting, "reserve-accounting", settings.AccountingAuto,
		"Where the reserve of a MachineDeployment without the annotation "+api.AccountingAnnotation+" is counted: additive, beyond spec.replicas; inclusive, within spec.replicas; auto, inclusive for MachineDeployments that a Gardener writes.")
	flags.BoolVar(&o.Drain, "drain-reserve", false,
		"Remove all reserves without affecting workload, and create none. A log line reports for each MachineDeployment that its reserve is gone; after the last one, you can return to stock machine-controller-manager.")
}

func (o *ReserveOptions) validate() error {
	seen := map[string]bool{}
	for _, effect := range o.TaintEffects {
		if effect != string(corev1.TaintEffectNoSchedule) && effect != string(corev1.TaintEffectNoExecute) || seen[effect] {
			return fmt.Errorf("--reserve-taint-effects: %q is invalid: use NoSchedule, or NoSchedule,NoExecute", effect)
		}
		seen[effect] = true
	}
	switch {
	case !seen[string(corev1.TaintEffectNoSchedule)]:
		return fmt.Errorf("--reserve-taint-effects: NoSchedule is missing: without it, reserve machines would get workload")
	case o.SurplusPatience <= 0:
		return fmt.Errorf("--surplus-patience: %v is invalid: use a duration above 0", o.SurplusPatience)
	case o.BootPatience < 0:
		return fmt.Errorf("--reserve-boot-patience: %v is invalid: use a duration, or 0 for no limit", o.BootPatience)
	}
	return settings.CheckAccounting(o.Accounting)
}

// taintController is the machine-taint controller. It works only beside machine-controller-manager's
// controllers: what they see of machines decides when a reserve may shrink, and it decides whether
// a machine that they create is in reserve.
type taintController struct {
	controller *machinetaint.Controller
	accounting *accounting
}

// newTaintController returns a machine-taint controller beside controllers with these informers.
func (p *process) newTaintController(seen machineinformers.Interface) (*taintController, error) {
	ours, err := machines.Evenkeel(p.control)
	if err != nil {
		return nil, fmt.Errorf("make machine client: %w", err)
	}
	clients := machinetaint.Clients{Machine: ours.MachineV1alpha1()}
	if p.target != nil {
		if clients.Target, err = connect.Core(p.target); err != nil {
			return nil, fmt.Errorf("make target client: %w", err)
		}
	}
	t := &taintController{accounting: &accounting{mode: p.options.Reserve.Accounting, discovery: ours.Discovery()}}
	informers := machinetaint.Informers{Machine: p.caches.machines, Seen: seen, Target: p.caches.target}
	t.controller, err = machinetaint.New(clients, informers, p.Recorder, p.options.Reserve.options(p, t.accounting))
	return t, err
}

func (o *ReserveOptions) options(p *process, a *accounting) machinetaint.Options {
	settings := keep.Settings{
		SurplusPatience: o.SurplusPatience, BootPatience: o.BootPatience, Drain: o.Drain, SafetyUp: int(p.options.SafetyOptions.SafetyUp), Accounting: a.accountingOf,
		Eviction: p.options.Eviction.Rule(), Unready: p.options.Unready.UnreadyLimits,
	}
	for _, effect := range o.TaintEffects {
		settings.Effects = append(settings.Effects, corev1.TaintEffect(effect))
	}
	return machinetaint.Options{Settings: settings, Workers: taintWorkers, Cluster: p.clusters.target, Registerer: p.registry}
}

// filled waits for the stores that the machine-taint controller has besides those of machine-controller-manager's
// controllers. It is false if ctx ends first.
func (t *taintController) filled(ctx context.Context) bool {
	return cache.WaitFor(ctx, "the reserve's own lists", t.controller.OwnStores()...)
}

// viewOptions returns the options of the view. They call a controller, which exists before the first
// write, to decide how machines are created and which may be deleted.
func viewOptions(t **taintController, bound *machineinformers.Interface) view.Options {
	births := view.CreationOptions{
		ReserveMark: func(b view.Creation) *api.Reserve { return (*t).controller.ReserveMark(b) },
		Seen:        func(version string) bool { return (*t).controller.Seen(version) },
		Superfluous: func(b view.Creation) error { return (*t).controller.Superfluous(b) },
		DeploymentOf: func(namespace string, m *v1alpha1.Machine) (types.NamespacedName, bool) {
			return view.OwnedThrough((*bound).MachineSets().Lister())(namespace, m)
		},
	}
	guards := view.Guards{
		Shrink: func(after *v1alpha1.MachineSet) (func(*v1alpha1.MachineSet, error), error) {
			return (*t).controller.Guards().Shrink(after)
		},
		Remove: func(namespace, name string) (string, func(error), error) {
			return (*t).controller.Guards().Remove(namespace, name)
		},
		Unname: func(before, after *v1alpha1.MachineDeployment) error {
			return (*t).controller.Guards().Unname(before, after)
		},
	}
	spares := func(d *v1alpha1.MachineDeployment) view.Reserve { return (*t).controller.Spares(d) }
	return view.Options{CreationOptions: births, Guards: guards, Spares: spares}
}

const (
	// gardenerAPI is served by the control cluster of a Gardener.
	gardenerAPI = "extensions.gardener.cloud/v1alpha1"
	// gardenerRetry is how often the control cluster is asked for that API while it does not serve
	// it, and answerRetry while it does not answer: new reserves wait for that.
	gardenerRetry = 5 * time.Minute
	answerRetry   = 5 * time.Second
)

// accounting decides where the reserves of MachineDeployments are counted that do not define it
// themselves.
type accounting struct {
	mode      string
	discovery discovery.DiscoveryInterface
	// gardener reports whether the control cluster is a Gardener's; nil until it has answered.
	gardener atomic.Pointer[bool]
}

// accountingOf returns an empty value while the accounting is unknown, so that nothing changes.
func (a *accounting) accountingOf(d *api.MachineDeployment) api.Accounting {
	gardener := a.gardener.Load()
	if a.mode == settings.AccountingAuto && gardener == nil {
		return ""
	}
	return settings.Accounting(a.mode, ptr.Deref(gardener, false), d)
}

// follow asks the control cluster until it is known to be a Gardener's, and calls changed with each
// new answer. Discovery requires no rights.
func (a *accounting) follow(ctx context.Context, changed func()) {
	for a.mode == settings.AccountingAuto {
		_, err := connect.Within(ctx, func() (*metav1.APIResourceList, error) {
			return a.discovery.ServerResourcesForGroupVersion(gardenerAPI)
		})
		is, retry := err == nil, gardenerRetry
		switch before := a.gardener.Load(); {
		case !is && !apierrors.IsNotFound(err):
			retry = answerRetry
			klog.FromContext(ctx).V(2).Info("The control cluster does not say whether it is a Gardener's, and new reserves wait for that unless --reserve-accounting is set", "err", err)
		case before == nil || *before != is:
			klog.FromContext(ctx).Info("Decided where reserves are counted by default", "gardener", is)
			a.gardener.Store(&is)
			changed()
		}
		if is {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry):
		}
	}
}
