// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// operation is one of a JSON patch. A test without a value passes where there is nothing.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patches raise replicas if what the raise rests on is as it was. At most one of them passes. There is one for each form in which
// replicas can be stored: clients with Go types leave 0 out, others write it.
func (r Raise) patches() [][]byte {
	if r.Pool.Basis.Replicas == 0 {
		return [][]byte{r.patch(0), r.patch(nil)}
	}
	return [][]byte{r.patch(r.Pool.Basis.Replicas)}
}

// patch tests for stored replicas. Where growth is held until it is split, it exempts this raise from that.
func (r Raise) patch(stored any) []byte {
	basis, after := r.Pool.Basis, r.after()
	operations := []operation{
		{"test", "/metadata/uid", basis.UID},
		{"test", "/metadata/generation", basis.Generation},
		{"test", "/spec/replicas", stored},
		{"test", annotation(v1alpha1.BoundsAnnotation), basis.Bounds},
		{"test", annotation(v1alpha1.AppliedReplicasAnnotation), basis.Applied},
		{"add", "/spec/replicas", after.Spec.Replicas},
	}
	if r.Pool.Applied != nil {
		operations = append(operations, operation{"add", annotation(v1alpha1.AppliedReplicasAnnotation), after.Annotations[v1alpha1.AppliedReplicasAnnotation]})
	}
	if basis.Excess != nil {
		key := annotation(v1alpha1.AppliedExcessAnnotation)
		operations = slices.Insert(operations, 0, operation{"test", key, basis.Excess})
		if text, left := after.Annotations[v1alpha1.AppliedExcessAnnotation]; left {
			operations = append(operations, operation{"add", key, text})
		} else {
			operations = append(operations, operation{"remove", key, nil})
		}
	}
	raw, err := json.Marshal(operations)
	if err != nil {
		panic(fmt.Sprintf("encode a patch: %v", err)) // texts and numbers always encode
	}
	return raw
}

// after is the MachineDeployment then: replicas, and the annotations that go with them.
func (r Raise) after() *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{}
	d.Spec.Replicas = r.Pool.Basis.Replicas
	if r.Pool.Applied != nil {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.AppliedReplicasAnnotation, fmt.Sprint(*r.Pool.Applied))
	}
	if text := r.Pool.Basis.Excess; text != nil {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.AppliedExcessAnnotation, *text)
	}
	pool.Release(d, int32(r.By))
	return d
}

// annotation is where an object has it.
func annotation(key string) string {
	return "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// outdated says of a refused patch that something it rests on has changed.
func outdated(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsConflict(err) }
