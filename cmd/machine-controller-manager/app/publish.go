// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/settings"
	"github.com/evenkeel/evenkeel/internal/version"
)

// publishEvery is how often the published settings are checked: they may have been deleted or
// changed, or the right to write them was missing.
const publishEvery = 10 * time.Minute

// publishes reports whether a preview depends on the flags of this process.
func (p *process) publishes() bool {
	return slices.ContainsFunc([]string{mcmName, releaseName, balanceName}, p.picked)
}

// publishSettings keeps the ConfigMap for `kubectl evenkeel plan` up to date until ctx ends.
// Without the right to write it, everything else still works.
func (p *process) publishSettings(ctx context.Context) error {
	wanted, err := settings.Publication(p.options.Namespace, p.Identity, version.Short(), p.options.flags)
	if err != nil {
		return err
	}
	core, err := connect.Core(p.control)
	if err != nil {
		return fmt.Errorf("make client for settings: %w", err)
	}
	ticker := time.NewTicker(publishEvery)
	defer ticker.Stop()
	reported := ""
	for {
		if err := publish(ctx, core.CoreV1().ConfigMaps(p.options.Namespace), wanted); err != nil && ctx.Err() == nil && err.Error() != reported {
			reported = err.Error()
			klog.FromContext(ctx).Info("Cannot publish the settings for kubectl evenkeel plan. Trying again every 10 minutes", "configMap", klog.KObj(wanted), "reason", reported)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func publish(ctx context.Context, configs typedcorev1.ConfigMapInterface, wanted *corev1.ConfigMap) error {
	is, err := configs.Get(ctx, wanted.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = configs.Create(ctx, wanted, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	case maps.Equal(is.Data, wanted.Data) && is.Annotations[settings.Holder] == wanted.Annotations[settings.Holder]:
		return nil
	}
	is = is.DeepCopy()
	is.Data = wanted.Data
	metav1.SetMetaDataAnnotation(&is.ObjectMeta, settings.Holder, wanted.Annotations[settings.Holder])
	_, err = configs.Update(ctx, is, metav1.UpdateOptions{})
	return err
}
