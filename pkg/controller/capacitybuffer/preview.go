// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"context"
	"errors"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
)

// Preview is a controller over given objects that writes nothing.
type Preview struct {
	c     *Controller
	clock *still.Clock
}

// Objects are everything that the preview reads. None of them is changed.
type Objects struct {
	Buffers     []*v1beta1.CapacityBuffer
	Reserves    []*autoscaling.Reserve
	Deployments []*machine.MachineDeployment
	Sets        []*mcm.MachineSet
	Machines    []*mcm.Machine
	Classes     []*mcm.MachineClass
	Nodes       []*corev1.Node
	Pods        []*corev1.Pod
	Daemons     []*appsv1.DaemonSet
}

// References are what buffers refer to. They do not change while a preview is used.
type References struct {
	// Objects are workloads, PodTemplates and ResourceQuotas, by their kinds.
	Objects map[string][]any
	// Unread is why a kind could not be read.
	Unread map[string]string
	// Scales reads the scale subresources of workloads of other kinds; nil reads none.
	Scales *ScaleReader
}

// KindQuota is the kind of ResourceQuotas.
const KindQuota = resourceQuotas

// ReferenceKinds returns the kinds whose objects are needed to decide about a buffer.
func ReferenceKinds(b *v1beta1.CapacityBuffer) []string {
	all := []string{resourceQuotas}
	if b.Spec.PodTemplateRef != nil {
		all = append(all, podTemplates)
	}
	if ref := b.Spec.ScalableRef; ref != nil && plan.Watched(ref) {
		all = append(all, ref.Kind)
	}
	return all
}

// NamedKinds returns the kinds that a buffer may name.
func NamedKinds() (all []schema.GroupVersionKind) {
	for kind := range resources {
		if kind != resourceQuotas {
			all = append(all, ReferenceResource(kind).GroupVersion().WithKind(kind))
		}
	}
	return all
}

// ReferenceResource returns the resource of one of these kinds.
func ReferenceResource(kind string) schema.GroupVersionResource {
	return resources[kind].WithVersion("v1")
}

// ReadsScale reports whether a buffer needs the scale subresource of a workload of another kind.
func ReadsScale(b *v1beta1.CapacityBuffer) bool {
	return b.Spec.ScalableRef != nil && !plan.Watched(b.Spec.ScalableRef)
}

// NewPreview returns a preview for the MachineDeployments of a namespace, without other objects.
func NewPreview(namespace string, r References) (*Preview, error) {
	p := &Preview{clock: &still.Clock{}}
	ours := externalversions.NewSharedInformerFactory(nil, 0)
	var err error
	p.c, err = New(Clients{}, Informers{
		Buffers: ours.CapacityBuffer().V1beta1().CapacityBuffers().Informer(), Reserves: ours.Autoscaling().V1alpha1().Reserves().Informer(),
		Machines: stores.New(nil, namespace), Target: target.New(nil, nil), Shapes: NewShapes(nil, nil),
	}, Options{Namespace: namespace, Clock: p.clock, Scales: r.Scales, FillOnce: true})
	if err != nil {
		return nil, err
	}
	p.c.lacks = func(kind string) string { return r.Unread[kind] }
	p.c.Run(still.EndedContext())
	return p, p.resolveReferences(r)
}

// resolveReferences keeps the references as the controller would.
func (p *Preview) resolveReferences(r References) error {
	var errs []error
	for kind, objects := range r.Objects {
		kept := make([]any, len(objects))
		for i, o := range objects {
			var err error
			kept[i], err = stripObject(o)
			errs = append(errs, err)
		}
		errs = append(errs, still.Replace(p.c.kinds[kind], kept))
	}
	return errors.Join(errs...)
}

// SetObjects replaces the objects of the preview.
func (p *Preview) SetObjects(o Objects, now time.Time) error {
	p.clock.Set(now)
	c, slim := p.c, make([]*v1beta1.CapacityBuffer, len(o.Buffers))
	for i, b := range o.Buffers {
		slim[i] = slimBuffer(b)
	}
	daemons, err := target.StripAll(o.Daemons)
	kinds := c.source.Kinds
	errs := []error{
		still.Replace(c.pods, o.Pods),
		still.Replace(c.buffers, slim), still.Replace(c.reserves, o.Reserves), still.Replace(c.deployments, o.Deployments),
		still.Replace(kinds.Sets, o.Sets), still.Replace(kinds.Machines, o.Machines), still.Replace(kinds.Classes, o.Classes),
		still.Replace(kinds.Nodes, o.Nodes), still.Replace(c.daemons, daemons), err,
	}
	return errors.Join(errs...)
}

// ReadScales reads the scales of workloads of other kinds, once.
func (p *Preview) ReadScales(ctx context.Context) {
	if p.c.options.Scales != nil {
		p.c.readScales(ctx)
	}
}

// Plan returns what the controller would do now.
func (p *Preview) Plan() plan.Plan { return plan.New(p.c.observe()) }
