// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// CreateMachine records the machine, if it does not exist yet, and returns. Run boots it.
func (d *Driver) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	leave, err := d.turns.acquire(ctx, r.Machine.Name)
	if err != nil {
		return nil, refuseFor("wait for machine "+r.Machine.Name, err)
	}
	defer leave()

	v, found := d.fleet.findVM(r.Machine.Name)
	if !found {
		spec, err := ParseSpec(r.MachineClass.ProviderSpec.Raw)
		if err != nil {
			return nil, refuse(codes.InvalidArgument, "machine class %s: %w", r.MachineClass.Name, err)
		}
		if v, err = d.createVM(ctx, r.Machine.Name, r.MachineClass.Name, spec); err != nil {
			return nil, err
		}
	}
	return &driver.CreateMachineResponse{ProviderID: v.ProviderID(), NodeName: v.Name}, nil
}

func (d *Driver) createVM(ctx context.Context, name, class string, spec Spec) (VM, error) {
	v := VM{
		Name: name, Class: class, Hardware: spec.Hardware,
		Created: d.Clock.Now().UTC(), BootDelay: spec.BootDelay.ForMachine(name),
	}
	if code := d.faultOf(v).create(); code != codes.OK {
		return VM{}, refuse(code, "a fault of the ConfigMap %s for zone %s, class %s or machine %s", FaultsConfigMap, spec.Zone, class, name)
	}
	if !d.fleet.reserveSlot(name, class, spec.Quota) {
		return VM{}, refuse(codes.ResourceExhausted, "the quota of class %s is used up: %d machines", class, *spec.Quota)
	}
	v, err := d.remember(ctx, v)
	if err != nil {
		d.fleet.remove(name)
		return VM{}, err
	}
	d.fleet.put(v)
	d.wakeLoop()
	klog.FromContext(ctx).V(2).Info("Created virtual machine", "machine", name, "class", class, "zone", spec.Zone, "boot", v.BootDelay)
	return v, nil
}

// remember writes the record. If it exists already, an earlier call whose answer was lost wrote it,
// and that machine counts.
func (d *Driver) remember(ctx context.Context, v VM) (VM, error) {
	config, err := recordOf(v, d.Namespace)
	if err != nil {
		return VM{}, refuse(codes.Internal, "%w", err)
	}
	records := d.Control.CoreV1().ConfigMaps(d.Namespace)
	_, err = records.Create(ctx, config, metav1.CreateOptions{})
	if err == nil {
		return v, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return VM{}, refuseFor("record machine "+v.Name, err)
	}
	config, err = records.Get(ctx, config.Name, metav1.GetOptions{})
	if err != nil {
		return VM{}, refuseFor("find record of machine "+v.Name, err)
	}
	v, err = FromRecord(config)
	if err != nil {
		return VM{}, refuse(codes.Internal, "the ConfigMap cannot be used, delete it: %w", err)
	}
	return v, nil
}
