// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// operation is one of a JSON patch. A test without a value wants that there is nothing.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch raises replicas if what the raise rests on is as it was. Where growth is held until it is split, it says that this is
// not to be.
func (r Raise) patch() []byte {
	basis := r.Pool.Basis
	operations := []operation{
		{"test", "/metadata/uid", basis.UID},
		{"test", "/metadata/generation", basis.Generation},
		{"test", annotation(v1alpha1.BoundsAnnotation), basis.Bounds},
		{"test", annotation(v1alpha1.AppliedReplicasAnnotation), basis.Applied},
		{"add", "/spec/replicas", r.replicas()},
	}
	if r.Pool.Applied != nil {
		operations = append(operations, operation{"add", annotation(v1alpha1.AppliedReplicasAnnotation), r.applied()})
	}
	raw, err := json.Marshal(operations)
	if err != nil {
		panic(fmt.Sprintf("encode a patch: %v", err)) // texts and numbers always encode
	}
	return raw
}

// replicas are those of the MachineDeployment then.
func (r Raise) replicas() int { return r.Pool.Replicas + r.By }

// applied is the annotation then, where there is one.
func (r Raise) applied() string { return fmt.Sprint(int(*r.Pool.Applied) + r.By) }

// annotation is where an object has it.
func annotation(key string) string {
	return "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// outdated says of a refused patch that something it rests on has changed.
func outdated(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsConflict(err) }
