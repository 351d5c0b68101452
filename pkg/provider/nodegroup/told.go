// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	corev1 "k8s.io/api/core/v1"

	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

// told is a Node as calls speak of it.
func told(node *corev1.Node) *pb.ExternalGrpcNode {
	return &pb.ExternalGrpcNode{ProviderID: node.Spec.ProviderID, Name: node.Name, Labels: node.Labels, Annotations: node.Annotations}
}
