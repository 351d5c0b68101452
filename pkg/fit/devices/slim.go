// SPDX-License-Identifier: Apache-2.0

package devices

import (
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// large is the annotation of a claim or template whose spec is too large and is not kept.
const large = "devices/large"

// Slim returns a copy of a claim with only what this package reads. If its spec exceeds a limit, a
// pod with the claim is undecided.
func Slim(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	slim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion, DeletionTimestamp: claim.DeletionTimestamp,
	}}
	if owner := metav1.GetControllerOfNoCopy(claim); owner != nil {
		slim.OwnerReferences = []metav1.OwnerReference{{UID: owner.UID, Controller: owner.Controller}}
	}
	slim.Status.ReservedFor = slimReservations(claim.Status.ReservedFor)
	if a := claim.Status.Allocation; a != nil {
		slim.Status.Allocation = &resourceapi.AllocationResult{NodeSelector: a.NodeSelector}
		slim.Status.Allocation.Devices.Results = slimResults(a.Devices.Results)
		return slim
	}
	slim.Spec = slimSpec(claim.Spec)
	if size(slim.Spec) > MaxBytes {
		slim.Spec = resourceapi.ResourceClaimSpec{}
		metav1.SetMetaDataAnnotation(&slim.ObjectMeta, large, "true")
	}
	return slim
}

// SlimTemplate is [Slim] for a template.
func SlimTemplate(t *resourceapi.ResourceClaimTemplate) *resourceapi.ResourceClaimTemplate {
	slim := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name, UID: t.UID, ResourceVersion: t.ResourceVersion}}
	slim.Spec.Spec = slimSpec(t.Spec.Spec)
	if size(slim.Spec.Spec) > MaxBytes {
		slim.Spec.Spec = resourceapi.ResourceClaimSpec{}
		metav1.SetMetaDataAnnotation(&slim.ObjectMeta, large, "true")
	}
	return slim
}

// slimSpec returns a spec without the configuration of devices, which does not affect the choice.
func slimSpec(spec resourceapi.ResourceClaimSpec) resourceapi.ResourceClaimSpec {
	spec.Devices.Config = nil
	return spec
}

// size is the size of what is kept of a spec.
func size(spec resourceapi.ResourceClaimSpec) int {
	spec = slimSpec(spec)
	return spec.Size()
}

func slimReservations(all []resourceapi.ResourceClaimConsumerReference) []resourceapi.ResourceClaimConsumerReference {
	var slim []resourceapi.ResourceClaimConsumerReference
	for _, r := range all {
		slim = append(slim, resourceapi.ResourceClaimConsumerReference{UID: r.UID})
	}
	return slim
}

func slimResults(all []resourceapi.DeviceRequestAllocationResult) []resourceapi.DeviceRequestAllocationResult {
	var slim []resourceapi.DeviceRequestAllocationResult
	for _, r := range all {
		slim = append(slim, resourceapi.DeviceRequestAllocationResult{
			Driver: r.Driver, Pool: r.Pool, Device: r.Device, AdminAccess: r.AdminAccess,
			ShareID: r.ShareID, ConsumedCapacity: r.ConsumedCapacity, BindingConditions: r.BindingConditions,
		})
	}
	return slim
}
