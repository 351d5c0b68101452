// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// Options of a Clientset. With the zero value, every Machine serves from its creation.
type Options struct {
	CreationOptions
	Guards
	// Spares returns the reserve of a MachineDeployment. It is called only while an excess is
	// applied. If it is nil, no status omits anything.
	Spares func(*v1alpha1.MachineDeployment) Reserve
	// Clock is the real one unless set.
	Clock clock.Clock
}

// Clientset returns views, and writes changes of views.
type Clientset struct {
	versioned.Interface

	stop      context.Context
	clock     clock.Clock
	creations *creationTracker
	guards    Guards
	spares    func(*v1alpha1.MachineDeployment) Reserve

	frozenSets        unfreezer[v1alpha1.MachineSet, *v1alpha1.MachineSet]
	frozenDeployments unfreezer[v1alpha1.MachineDeployment, *v1alpha1.MachineDeployment]
}

var _ versioned.Interface = &Clientset{}

// New wraps a clientset, which must have a real REST client. Writes are no longer repeated after
// ctx has ended.
func New(ctx context.Context, inner versioned.Interface, o Options) *Clientset {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Clientset{Interface: inner, stop: ctx, clock: o.Clock, creations: newCreationTracker(o.CreationOptions, o.Clock), guards: o.Guards, spares: o.Spares}
}

// MachineV1alpha1 returns the client of the views.
func (c *Clientset) MachineV1alpha1() machineclient.MachineV1alpha1Interface {
	return typed{MachineV1alpha1Interface: c.Interface.MachineV1alpha1(), c: c}
}

// typed passes MachineClasses through unchanged, and MachineSets unless their replicas are reduced or
// they are unfrozen.
type typed struct {
	machineclient.MachineV1alpha1Interface
	c *Clientset
}

func (t typed) Machines(namespace string) machineclient.MachineInterface {
	return machines{
		MachineInterface: t.MachineV1alpha1Interface.Machines(namespace),
		creations:        t.c.creations,
		guards:           t.c.guards,
		namespace:        namespace,
		write: writer[v1alpha1.Machine, *v1alpha1.Machine]{
			c: t.c, rest: t.RESTClient(), resource: "machines", namespace: namespace, show: ShowMachine, restore: RestoreMachine,
		},
	}
}

func (t typed) MachineSets(namespace string) machineclient.MachineSetInterface {
	return machineSets{t.MachineV1alpha1Interface.MachineSets(namespace), t.c.guards, &t.c.frozenSets}
}

func (t typed) MachineDeployments(namespace string) machineclient.MachineDeploymentInterface {
	return deployments{
		MachineDeploymentInterface: t.MachineV1alpha1Interface.MachineDeployments(namespace),
		show:                       t.c.showDeployment,
		frozen:                     &t.c.frozenDeployments,
		guards:                     t.c.guards,
		write: writer[v1alpha1.MachineDeployment, *v1alpha1.MachineDeployment]{
			c: t.c, rest: t.RESTClient(), resource: "machinedeployments", namespace: namespace, show: t.c.showDeployment, restore: t.c.restoreDeployment,
		},
	}
}

type machines struct {
	machineclient.MachineInterface
	creations *creationTracker
	guards    Guards
	namespace string
	write     writer[v1alpha1.Machine, *v1alpha1.Machine]
}

func (m machines) Create(ctx context.Context, machine *v1alpha1.Machine, o metav1.CreateOptions) (*v1alpha1.Machine, error) {
	if len(o.DryRun) > 0 {
		return m.MachineInterface.Create(ctx, machine, o)
	}
	born, done, err := m.creations.startCreation(m.namespace, machine)
	if err != nil {
		return &v1alpha1.Machine{}, err
	}
	made, err := m.MachineInterface.Create(ctx, born, o)
	done(made, err)
	return ShowMachine(made), err
}

func (m machines) Update(ctx context.Context, machine *v1alpha1.Machine, o metav1.UpdateOptions) (*v1alpha1.Machine, error) {
	return m.write.update(ctx, machine, o)
}

func (m machines) UpdateStatus(ctx context.Context, machine *v1alpha1.Machine, o metav1.UpdateOptions) (*v1alpha1.Machine, error) {
	return m.write.update(ctx, machine, o, "status")
}

func (m machines) Get(ctx context.Context, name string, o metav1.GetOptions) (*v1alpha1.Machine, error) {
	machine, err := m.MachineInterface.Get(ctx, name, o)
	if err == nil {
		m.creations.observe(m.namespace, machine)
	}
	return ShowMachine(machine), err
}

func (m machines) List(ctx context.Context, o metav1.ListOptions) (*v1alpha1.MachineList, error) {
	list, err := m.MachineInterface.List(ctx, o)
	if err != nil {
		return list, err
	}
	for i := range list.Items {
		list.Items[i] = *ShowMachine(&list.Items[i])
	}
	return list, nil
}

func (m machines) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := m.MachineInterface.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return viewsOf(w, ShowMachine), nil
}

// Patch allows the patches by which machines are adopted, released and labeled (V10).
func (m machines) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*v1alpha1.Machine, error) {
	if err := checkPatch("machines", pt, data, subresources); err != nil {
		return &v1alpha1.Machine{}, err
	}
	machine, err := m.MachineInterface.Patch(ctx, name, pt, data, o)
	return ShowMachine(machine), err
}

// checkPatch refuses a patch of anything except ownerReferences, labels and uid.
func checkPatch(resource string, pt types.PatchType, patch []byte, subresources []string) error {
	if pt != types.MergePatchType || len(subresources) > 0 {
		return apierrors.NewMethodNotSupported(v1alpha1.Resource(resource), "patch")
	}
	var content struct {
		Metadata struct {
			OwnerReferences, Labels, UID any
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(patch))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&content); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("patch %s beyond owners, labels and uid: %v", resource, err))
	}
	return nil
}

type deployments struct {
	machineclient.MachineDeploymentInterface
	show   func(*v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment
	frozen *unfreezer[v1alpha1.MachineDeployment, *v1alpha1.MachineDeployment]
	guards Guards
	write  writer[v1alpha1.MachineDeployment, *v1alpha1.MachineDeployment]
}

func (d deployments) Create(ctx context.Context, deployment *v1alpha1.MachineDeployment, o metav1.CreateOptions) (*v1alpha1.MachineDeployment, error) {
	made, err := d.MachineDeploymentInterface.Create(ctx, deployment, o)
	return d.show(made), err
}

func (d deployments) Update(ctx context.Context, deployment *v1alpha1.MachineDeployment, o metav1.UpdateOptions) (*v1alpha1.MachineDeployment, error) {
	d.write.allow = d.guards.Unname
	return d.update(ctx, deployment, o, unfreezeLabels)
}

func (d deployments) UpdateStatus(ctx context.Context, deployment *v1alpha1.MachineDeployment, o metav1.UpdateOptions) (*v1alpha1.MachineDeployment, error) {
	return d.update(ctx, deployment, o, unfreezeDeploymentStatus, "status")
}

func (d deployments) update(ctx context.Context, deployment *v1alpha1.MachineDeployment, o metav1.UpdateOptions, unfreeze func(*v1alpha1.MachineDeployment), subresource ...string) (*v1alpha1.MachineDeployment, error) {
	return d.frozen.write(deployment, unfreeze, func(after *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, error) {
		return d.write.update(ctx, after, o, subresource...)
	}, func() (*v1alpha1.MachineDeployment, error) { return d.get(ctx, deployment.Name, metav1.GetOptions{}) })
}

func (d deployments) Get(ctx context.Context, name string, o metav1.GetOptions) (*v1alpha1.MachineDeployment, error) {
	return d.frozen.read(d.get(ctx, name, o))
}

func (d deployments) get(ctx context.Context, name string, o metav1.GetOptions) (*v1alpha1.MachineDeployment, error) {
	deployment, err := d.MachineDeploymentInterface.Get(ctx, name, o)
	return d.show(deployment), err
}

func (d deployments) List(ctx context.Context, o metav1.ListOptions) (*v1alpha1.MachineDeploymentList, error) {
	list, err := d.MachineDeploymentInterface.List(ctx, o)
	if err != nil {
		return list, err
	}
	for i := range list.Items {
		list.Items[i] = *d.show(&list.Items[i])
	}
	return list, nil
}

func (d deployments) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := d.MachineDeploymentInterface.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return viewsOf(w, d.show), nil
}

// Patch is refused (V10).
func (d deployments) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*v1alpha1.MachineDeployment, error) {
	return &v1alpha1.MachineDeployment{}, apierrors.NewMethodNotSupported(v1alpha1.Resource("machinedeployments"), "patch")
}

// UpdateScale is refused (V10).
func (d deployments) UpdateScale(context.Context, string, *autoscalingv1.Scale, metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	return &autoscalingv1.Scale{}, apierrors.NewMethodNotSupported(v1alpha1.Resource("machinedeployments"), "scale")
}
