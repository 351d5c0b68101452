// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// follow keeps the faults up to date with the ConfigMap.
func (d *Driver) follow(ctx context.Context, informer cache.SharedIndexInformer) (cache.DoneChecker, error) {
	read := func(object any) {
		if config, ok := object.(*corev1.ConfigMap); ok {
			d.readFaults(ctx, config)
		}
	}
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    read,
		UpdateFunc: func(_, object any) { read(object) },
		DeleteFunc: func(any) { d.suffer(ctx, Faults{}) },
	})
	if err != nil {
		return nil, err
	}
	return handle.HasSyncedChecker(), nil
}

// readFaults uses the faults of the ConfigMap if they are valid; otherwise the last ones stay.
func (d *Driver) readFaults(ctx context.Context, config *corev1.ConfigMap) {
	faults, err := ParseFaults(config.Data)
	if err != nil {
		d.complain(ctx, config, "InvalidFaults", err)
		return
	}
	d.suffer(ctx, faults)
}

func (d *Driver) suffer(ctx context.Context, faults Faults) {
	d.faults.Store(&faults)
	klog.FromContext(ctx).V(2).Info("Faults in effect", "zones", len(faults.Zones), "classes", len(faults.Classes), "machines", len(faults.Machines))
	d.wakeLoop()
}

// complain records an event about an invalid ConfigMap.
func (d *Driver) complain(ctx context.Context, config *corev1.ConfigMap, reason string, err error) {
	klog.FromContext(ctx).Info("ConfigMap cannot be used", "configMap", klog.KObj(config), "reason", reason, "err", err)
	d.Recorder.Event(config, corev1.EventTypeWarning, reason, err.Error())
}
