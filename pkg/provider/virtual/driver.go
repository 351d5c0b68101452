// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// How long one call of MCM may wait for the API server.
const callTimeout = 10 * time.Second

// Options are what a Driver needs.
type Options struct {
	// Namespace of Machines, records and faults in the control cluster.
	Namespace string
	Control   kubernetes.Interface
	Machines  machineclient.MachinesGetter
	// Target is the cluster of the Nodes; nil if there is none.
	Target   kubernetes.Interface
	Recorder record.EventRecorder
	// Clock is the real one unless set.
	Clock clock.Clock
}

// Driver is the cloud. Call LoadRecords first, then run it beside the machine controller that calls
// it.
type Driver struct {
	Options
	fleet  fleet
	turns  keyLocks
	faults atomic.Pointer[Faults]
	wake   chan struct{}
}

var _ driver.Driver = (*Driver)(nil)

// New returns a driver. It does nothing yet.
func New(o Options) *Driver {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	d := &Driver{Options: o, wake: make(chan struct{}, 1)}
	d.faults.Store(&Faults{})
	return d
}

// LoadRecords reads the records and the faults. Until then, every request fails with Unavailable,
// so that no machine is lost or created twice.
func (d *Driver) LoadRecords(ctx context.Context) error {
	records, err := d.Control.CoreV1().ConfigMaps(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: RecordLabel})
	if err != nil {
		return fmt.Errorf("load machines: %w", err)
	}
	config, err := d.Control.CoreV1().ConfigMaps(d.Namespace).Get(ctx, FaultsConfigMap, metav1.GetOptions{})
	switch {
	case err == nil:
		d.readFaults(ctx, config)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("load faults: %w", err)
	}
	var vms []VM
	for i := range records.Items {
		v, err := FromRecord(&records.Items[i])
		if err != nil {
			d.complain(ctx, &records.Items[i], "InvalidRecord", err)
			continue
		}
		vms = append(vms, v)
	}
	d.fleet.loadVMs(vms)
	klog.FromContext(ctx).Info("Loaded virtual machines", "machines", len(vms))
	return nil
}

// GetMachineStatus reports whether the machine exists.
func (d *Driver) GetMachineStatus(_ context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	v, found := d.fleet.findVM(r.Machine.Name)
	if !found {
		return nil, refuse(codes.NotFound, "machine %s does not exist", r.Machine.Name)
	}
	return &driver.GetMachineStatusResponse{ProviderID: v.ProviderID(), NodeName: v.Name}, nil
}

// ListMachines lists the machines of one class.
func (d *Driver) ListMachines(_ context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	list := map[string]string{}
	for _, v := range d.fleet.allVMs() {
		if v.Class == r.MachineClass.Name {
			list[v.ProviderID()] = v.Name
		}
	}
	return &driver.ListMachinesResponse{MachineList: list}, nil
}

// InitializeMachine has nothing to do; MCM continues without it.
func (d *Driver) InitializeMachine(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return nil, refuse(codes.Unimplemented, "virtual machines need no initialization")
}

// GetVolumeIDs returns no volumes, so MCM does not wait until they are detached.
func (d *Driver) GetVolumeIDs(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return &driver.GetVolumeIDsResponse{}, nil
}

func (d *Driver) usable() error {
	if !d.fleet.isLoaded() {
		return refuse(codes.Unavailable, "the virtual machines are not loaded yet")
	}
	return nil
}

// faultOf returns the machine's present fault.
func (d *Driver) faultOf(v VM) Fault {
	return d.faults.Load().ForMachine(v.Hardware.Zone, v.Class, v.Name)
}

// wakeLoop makes the loop plan again.
func (d *Driver) wakeLoop() {
	select {
	case d.wake <- struct{}{}:
	default: // it will run anyway
	}
}
