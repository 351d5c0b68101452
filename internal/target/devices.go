// SPDX-License-Identifier: Apache-2.0

package target

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
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
		Slices: access.Informer(i.factory.InformerFor, i.rights, deviceRule("resourceslices"), &resourceapi.ResourceSlice{}, func(c kubernetes.Interface) access.Reader[*resourceapi.ResourceSliceList] {
			return c.ResourceV1().ResourceSlices()
		}),
		Classes: access.Informer(i.factory.InformerFor, i.rights, deviceRule("deviceclasses"), &resourceapi.DeviceClass{}, func(c kubernetes.Interface) access.Reader[*resourceapi.DeviceClassList] {
			return c.ResourceV1().DeviceClasses()
		}),
		Claims: access.Informer(i.factory.InformerFor, i.rights, deviceRule("resourceclaims"), &resourceapi.ResourceClaim{}, func(c kubernetes.Interface) access.Reader[*resourceapi.ResourceClaimList] {
			return c.ResourceV1().ResourceClaims(corev1.NamespaceAll)
		}),
		Templates: access.Informer(i.factory.InformerFor, i.rights, deviceRule("resourceclaimtemplates"), &resourceapi.ResourceClaimTemplate{}, func(c kubernetes.Interface) access.Reader[*resourceapi.ResourceClaimTemplateList] {
			return c.ResourceV1().ResourceClaimTemplates(corev1.NamespaceAll)
		}),
	}
}

func deviceRule(resource string) access.Rule {
	return access.Rule{Cluster: "target", Resource: resourceapi.Resource(resource), Without: "Reserve machines are not released for pods that claim devices"}
}

// Inventory returns what the stores of the informers know, for pods that wait.
func (d Devices) Inventory(waiting []*corev1.Pod, selectors *devices.Selectors) *devices.Inventory {
	return devices.New(devices.Listing{
		Slices: stores.List[*resourceapi.ResourceSlice](d.Slices.GetIndexer()), Classes: stores.List[*resourceapi.DeviceClass](d.Classes.GetIndexer()),
		Claims: stores.List[*resourceapi.ResourceClaim](d.Claims.GetIndexer()), Templates: stores.List[*resourceapi.ResourceClaimTemplate](d.Templates.GetIndexer()),
		Waiting: waiting,
	}, selectors)
}
