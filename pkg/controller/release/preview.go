// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
)

// Preview is a controller over given objects that writes nothing.
type Preview struct {
	c     *Controller
	clock *still.Clock
	// slim contains the stripped pods, by the given ones.
	slim   map[*corev1.Pod]*corev1.Pod
	groups cache.Indexer
}

// Objects are everything that the preview reads. None of them is changed.
type Objects struct {
	Deployments    []*v1alpha1.MachineDeployment
	Sets           []*mcm.MachineSet
	Machines       []*mcm.Machine
	MachineClasses []*mcm.MachineClass

	Pods    []*corev1.Pod
	Nodes   []*corev1.Node
	Claims  []*corev1.PersistentVolumeClaim
	Volumes []*corev1.PersistentVolume
	Classes []*storagev1.StorageClass
	Drivers []*storagev1.CSIDriver
	Daemons []*appsv1.DaemonSet

	ReplicaSets []*appsv1.ReplicaSet
	Jobs        []*batchv1.Job
	PodGroups   []*schedulingv1alpha2.PodGroup

	Slices         []*resourceapi.ResourceSlice
	DeviceClasses  []*resourceapi.DeviceClass
	DeviceClaims   []*resourceapi.ResourceClaim
	ClaimTemplates []*resourceapi.ResourceClaimTemplate
}

// NewPreview returns a preview without objects.
func NewPreview(s plan.Settings) (*Preview, error) {
	p := &Preview{clock: &still.Clock{}}
	var err error
	p.c, err = New(nil, Informers{
		Machines: stores.New(nil, metav1.NamespaceAll),
		Target:   target.New(nil, nil),
	}, nil, Options{Settings: s, Clock: p.clock})
	if err != nil {
		return nil, err
	}
	p.c.stores.jobs = p.c.informers.Jobs().GetIndexer()
	p.groups, p.c.devices.Devices = p.c.informers.PodGroups().GetIndexer(), p.c.informers.Devices()
	p.c.groups.complete.Store(true)
	p.c.devices.complete.Store(true)
	p.c.stores.storage.DriversKnown = func() bool { return true }
	p.c.Run(still.EndedContext())
	return p, nil
}

// SetObjects replaces the objects of the preview.
func (p *Preview) SetObjects(o Objects, now time.Time) error {
	p.clock.Set(now)
	s, kinds := &p.c.stores, p.c.devices.Devices
	pods := p.stripPods(o.Pods)
	daemons, errDaemons := target.StripAll(o.Daemons)
	claims, errClaims := target.StripAll(o.DeviceClaims)
	templates, errTemplates := target.StripAll(o.ClaimTemplates)
	return errors.Join(
		errDaemons, errClaims, errTemplates,
		still.Replace(s.deployments, o.Deployments), still.Replace(s.sets, o.Sets),
		still.Replace(s.machines, o.Machines), still.Replace(s.machineClasses, o.MachineClasses),
		still.Replace(s.pods, pods), still.Replace(s.nodes, o.Nodes), still.Replace(s.storage.Claims, o.Claims),
		still.Replace(s.storage.Volumes, o.Volumes), still.Replace(s.storage.Classes, o.Classes), still.Replace(s.storage.Drivers, o.Drivers),
		still.Replace(s.daemons, daemons), still.Replace(s.replicaSets, o.ReplicaSets),
		still.Replace(s.jobs, o.Jobs), still.Replace(p.groups, o.PodGroups),
		still.Replace(kinds.Slices.GetIndexer(), o.Slices), still.Replace(kinds.Classes.GetIndexer(), o.DeviceClasses),
		still.Replace(kinds.Claims.GetIndexer(), claims), still.Replace(kinds.Templates.GetIndexer(), templates),
	)
}

// stripPods returns the pods as the controller keeps them.
func (p *Preview) stripPods(given []*corev1.Pod) []*corev1.Pod {
	before := p.slim
	p.slim, p.c.podCache.pods, p.c.podCache.latest = make(map[*corev1.Pod]*corev1.Pod, len(given)), nil, nil
	var all []*corev1.Pod
	for _, pod := range given {
		slim := before[pod]
		if slim == nil {
			slim = target.StripPod(pod)
		}
		p.slim[pod] = slim
		p.c.podCache.addPod(slim)
		all = append(all, slim)
	}
	return all
}

// Plan returns what the controller would do now. The next plan remembers it.
func (p *Preview) Plan() plan.Plan {
	if !p.c.podsWait() {
		p.c.memory = nil
		return plan.Plan{}
	}
	decided := plan.New(p.c.observe(p.clock.Now()))
	p.c.memory = decided.Memory
	return decided
}
