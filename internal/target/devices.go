// SPDX-License-Identifier: Apache-2.0

package target

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/fit/devices"
)

// SlicesResource is one of those that [Informers.Devices] reads, which older clusters do not serve.
var SlicesResource = resourceapi.SchemeGroupVersion.WithResource("resourceslices")

// Devices are the informers of what decides about claims to devices. Each waits while the process lacks
// the right to read its kind.
type Devices struct {
	Slices, Classes, Claims, Templates cache.SharedIndexInformer
}

// All returns all of them.
func (d Devices) All() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{d.Slices, d.Classes, d.Claims, d.Templates}
}

// Devices returns these informers. Request them only where the kinds are served.
func (i *Informers) Devices() Devices {
	return Devices{
		Slices: i.slices(), Classes: i.classes(),
		Claims: access.Informer(i.factory.InformerFor, i.rights, deviceRule("resourceclaims", noClaims), &resourceapi.ResourceClaim{}, func(c kubernetes.Interface) access.Reader[*resourceapi.ResourceClaimList] {
			return c.ResourceV1().ResourceClaims(corev1.NamespaceAll)
		}),
		Templates: access.Informer(i.factory.InformerFor, i.rights, deviceRule("resourceclaimtemplates", noClaims), &resourceapi.ResourceClaimTemplate{}, func(c kubernetes.Interface) access.Reader[*resourceapi.ResourceClaimTemplateList] {
			return c.ResourceV1().ResourceClaimTemplates(corev1.NamespaceAll)
		}),
	}
}

// slices returns the informer of ResourceSlices, with the indexes by which [DeviceCounts] find them.
func (i *Informers) slices() cache.SharedIndexInformer {
	indexed := func(object runtime.Object, newInformer func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer) cache.SharedIndexInformer {
		return i.factory.InformerFor(object, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			informer := newInformer(c, resync)
			if err := informer.AddIndexers(deviceIndexes()); err != nil {
				panic(err) // it is new, and has none
			}
			return informer
		})
	}
	return access.Informer(indexed, i.rights, slicesRule, &resourceapi.ResourceSlice{}, func(c kubernetes.Interface) access.Reader[*resourceapi.ResourceSliceList] {
		return c.ResourceV1().ResourceSlices()
	})
}

// classes returns the informer of DeviceClasses.
func (i *Informers) classes() cache.SharedIndexInformer {
	return access.Informer(i.factory.InformerFor, i.rights, deviceClassesRule, &resourceapi.DeviceClass{}, func(c kubernetes.Interface) access.Reader[*resourceapi.DeviceClassList] {
		return c.ResourceV1().DeviceClasses()
	})
}

const (
	noClaims  = "Reserve machines are not released for pods that claim devices"
	noDevices = noClaims + ", and no reserve can be requested in devices"
)

var slicesRule, deviceClassesRule = deviceRule("resourceslices", noDevices), deviceRule("deviceclasses", noDevices)

func deviceRule(resource, without string) access.Rule {
	return access.Rule{Cluster: "target", Resource: resourceapi.Resource(resource), Without: without}
}

// Inventory returns what the stores of the informers know, for pods that wait.
func (d Devices) Inventory(waiting []*corev1.Pod, selectors *devices.Selectors) *devices.Inventory {
	return devices.New(devices.Listing{
		Slices: stores.List[*resourceapi.ResourceSlice](d.Slices.GetIndexer()), Classes: stores.List[*resourceapi.DeviceClass](d.Classes.GetIndexer()),
		Claims: stores.List[*resourceapi.ResourceClaim](d.Claims.GetIndexer()), Templates: stores.List[*resourceapi.ResourceClaimTemplate](d.Templates.GetIndexer()),
		Waiting: waiting,
	}, selectors)
}
