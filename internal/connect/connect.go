// SPDX-License-Identifier: Apache-2.0

// Package connect creates clients of clusters, and limits requests that take no context.
package connect

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Core returns a client of Kubernetes' own kinds that uses protobuf. Reading a pod takes a fraction
// of the time that JSON takes, here and at the API server, and pods are most of what a watcher
// reads. Custom resources support only JSON, so the configuration itself does not change.
func Core(config *rest.Config) (*kubernetes.Clientset, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return kubernetes.NewForConfig(config)
}
