// SPDX-License-Identifier: Apache-2.0

// Package v1 is our API of ProvisioningRequests under the names that Kueue uses, so that Kueue can
// be built without another module.
package v1

import "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"

type (
	Detail                  = v1.Detail
	Parameter               = v1.Parameter
	PodSet                  = v1.PodSet
	ProvisioningRequest     = v1.ProvisioningRequest
	ProvisioningRequestList = v1.ProvisioningRequestList
	ProvisioningRequestSpec = v1.ProvisioningRequestSpec
	Reference               = v1.Reference
)

var (
	AddToScheme        = v1.AddToScheme
	SchemeGroupVersion = v1.SchemeGroupVersion
)

const (
	Accepted        = v1.ConditionAccepted
	BookingExpired  = v1.ConditionBookingExpired
	CapacityRevoked = "CapacityRevoked"
	Failed          = v1.ConditionFailed
	Provisioned     = v1.ConditionProvisioned

	ProvisioningClassPodAnnotationKey   = "autoscaling.x-k8s.io/provisioning-class-name"
	ProvisioningRequestPodAnnotationKey = v1.ConsumeAnnotation
)
