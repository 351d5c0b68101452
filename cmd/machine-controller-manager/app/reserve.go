// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/settings"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
)

// ReserveOptions are the flags about reserves.
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
	flags.DurationVar(&o.SurplusPatience, "surplus-patience", machinetaint.DefaultSurplusPatience,
		"How long more machines than replicas can serve while none of them is empty, for example after a machine recovered. After that, the emptiest machine is drained.")
	flags.DurationVar(&o.BootPatience, "reserve-boot-patience", machinetaint.DefaultBootPatience,
		"How long a reserve machine may take to become ready. After that, it is deleted, and the reserve tries again later. Must be less than --machine-creation-timeout of the machine controller. 0 means no limit.")
	flags.StringVar(&o.Accounting, "reserve-accounting", settings.AccountingAuto,
		"Where the reserve of a MachineDeployment without the annotation "+api.AccountingAnnotation+" is counted: additive, beyond spec.replicas; inclusive, within spec.replicas; auto, inclusive for MachineDeployments that a Gardener writes.")
	flags.BoolVar(&o.Drain, "drain-reserve", false,
		"Remove all reserves without affecting workload, and create none. The log reports each MachineDeployment whose reserve is gone. Once all are, you can return to stock machine-controller-manager.")
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

// settings are those of reserves.
func (o *ReserveOptions) settings(p *process, a *accounting) machinetaint.Settings {
	s := machinetaint.Settings{
		SurplusPatience: o.SurplusPatience, BootPatience: o.BootPatience, Drain: o.Drain, Accounting: a.accountingOf,
		Eviction: p.options.Eviction.Rule(), Unready: p.options.Unready.UnreadyLimits, Preparation: p.preparationOf,
	}
	for _, effect := range o.TaintEffects {
		s.Effects = append(s.Effects, corev1.TaintEffect(effect))
	}
	return s
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
			klog.FromContext(ctx).V(2).Info("Cannot find out whether the control cluster has Gardener's kinds. New reserves wait for this unless --reserve-accounting is set", "err", err)
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
