// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"strings"

	"k8s.io/client-go/tools/cache"
)

// kind is what a key stands for. It is part of the key's text.
type kind string

const (
	deploymentKind kind = "MachineDeployment"
	setKind        kind = "MachineSet"
	// releaseKind stands for a MachineDeployment whose reserve workload needs at once, also while machines
	// of it are created and deleted.
	releaseKind kind = "Release"
	// nodeKind stands for a Node that has registered with the registration taint. It has no namespace.
	nodeKind kind = "Node"
)

// key is what is synced at a time.
type key struct {
	kind            kind
	namespace, name string
}

// String returns the key of the queue, which serves namespaces in turn.
func (k key) String() string { return k.namespace + "/" + string(k.kind) + ":" + k.name }

// ofSets returns the key that MachineSets have.
func (k key) ofSets() key {
	if k.kind == releaseKind {
		k.kind = deploymentKind
	}
	return k
}

// parseKey returns the key with this text.
func parseKey(text string) key {
	namespace, rest, _ := cache.SplitMetaNamespaceKey(text)
	of, name, _ := strings.Cut(rest, ":")
	return key{kind(of), namespace, name}
}
