// SPDX-License-Identifier: Apache-2.0

// Package drain requests by an annotation that reserves are given up, and follows the progress. The
// controller of MachineDeployments removes the reserves.
package drain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
)

// Drain requests and follows the drain of one namespace, or of all if the namespace is empty.
type Drain struct {
	client    machineclient.MachineV1alpha1Interface
	namespace string
	// manager of the fields that are written.
	manager string
}

// New connects to the control cluster, and writes as a manager of fields.
func New(config *rest.Config, namespace, manager string) (*Drain, error) {
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the control cluster: %w", err)
	}
	return &Drain{client: client.MachineV1alpha1(), namespace: namespace, manager: manager}, nil
}

// Annotate asks MachineDeployments to give up their reserve, or takes the request back. It skips
// those that have the annotation already, and records in pools what it has written.
func (d *Drain) Annotate(ctx context.Context, pools Progress, drained bool) error {
	var value any
	if drained {
		value = "true"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{machine.DrainReserveAnnotation: value}}})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	var errs []error
	for i, p := range pools {
		if p.Told == drained {
			continue
		}
		_, err := d.client.MachineDeployments(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: d.manager})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("write machine deployment %s/%s: %w", p.Namespace, p.Name, err))
			continue
		}
		pools[i].Told = drained
	}
	return errors.Join(errs...)
}

// Progress returns the progress of the drain.
func (d *Drain) Progress(ctx context.Context) (Progress, error) {
	deployments, err := d.client.MachineDeployments(d.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list machine deployments: %w", err)
	}
	sets, err := d.client.MachineSets(d.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list machine sets: %w", err)
	}
	machines, err := d.client.Machines(d.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list machines: %w", err)
	}
	return progress(deployments.Items, sets.Items, machines.Items), nil
}

func progress(deployments []machine.MachineDeployment, sets []mcm.MachineSet, machines []mcm.Machine) Progress {
	owner := map[types.UID]types.UID{}
	for i := range sets {
		if o := metav1.GetControllerOfNoCopy(&sets[i]); o != nil {
			owner[sets[i].UID] = o.UID
		}
	}
	marked, there := map[types.UID]int{}, map[types.UID]int{}
	for i := range machines {
		o := metav1.GetControllerOfNoCopy(&machines[i])
		if o == nil {
			continue
		}
		there[owner[o.UID]]++
		if machines[i].Annotations[machine.ReserveAnnotation] != "" {
			marked[owner[o.UID]]++
		}
	}
	var all Progress
	for i := range deployments {
		all = append(all, poolOf(&deployments[i], marked[deployments[i].UID], there[deployments[i].UID]))
	}
	return all
}
