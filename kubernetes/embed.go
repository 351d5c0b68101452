// SPDX-License-Identifier: Apache-2.0

// Package kubernetes gives programs the manifests in this folder that they install themselves.
package kubernetes

import _ "embed"

// CapacityBuffers is the CustomResourceDefinition of CapacityBuffers.
//
//go:embed optional-crds/autoscaling.x-k8s.io_capacitybuffers.yaml
var CapacityBuffers []byte
