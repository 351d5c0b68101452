// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/settings"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

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
