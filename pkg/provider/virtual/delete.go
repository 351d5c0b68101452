// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// DeleteMachine deletes the Node, then forgets the machine. If they are gone already, that is no
// error.
func (d *Driver) DeleteMachine(ctx context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name := r.Machine.Name
	leave, err := d.turns.acquire(ctx, name)
	if err != nil {
		return nil, refuseFor("wait for machine "+name, err)
	}
	defer leave()

	if v, found := d.fleet.findVM(name); found && d.faultOf(v).StuckDelete {
		return nil, refuse(codes.DeadlineExceeded, "a fault of the ConfigMap %s keeps machine %s", FaultsConfigMap, name)
	}
	// Delete the Node first: after a crash, no process would delete a Node whose machine is
	// forgotten.
	if err := d.deleteNode(ctx, name); err != nil {
		return nil, refuseFor("delete node of machine "+name, err)
	}
	err = d.Control.CoreV1().ConfigMaps(d.Namespace).Delete(ctx, recordName(name), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, refuseFor("delete record of machine "+name, err)
	}
	d.fleet.remove(name)
	klog.FromContext(ctx).V(2).Info("Deleted virtual machine", "machine", name)
	return &driver.DeleteMachineResponse{}, nil
}

func (d *Driver) deleteNode(ctx context.Context, machine string) error {
	if d.Target == nil {
		return nil
	}
	node, err := d.Target.CoreV1().Nodes().Get(ctx, machine, metav1.GetOptions{})
	if err == nil && isVirtual(node) {
		err = d.Target.CoreV1().Nodes().Delete(ctx, machine, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &node.UID},
		})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// isVirtual reports whether the Node was a machine of this cloud, whether that is still recorded or
// not.
func isVirtual(node *corev1.Node) bool {
	return strings.HasPrefix(node.Spec.ProviderID, scheme) && strings.Contains(node.Spec.ProviderID, "/"+node.Name+"/")
}
