// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// operation is one operation of a JSON patch. A test without a value succeeds if nothing is there.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// BasisOf returns what a raise of a MachineDeployment is based on.
func BasisOf(d *v1alpha1.MachineDeployment) Basis {
	annotation := func(key string) *string {
		if text, set := d.Annotations[key]; set {
			return &text
		}
		return nil
	}
	return Basis{
		UID: d.UID, Generation: d.Generation, Replicas: d.Spec.Replicas, Bounds: d.Annotations[v1alpha1.BoundsAnnotation],
		Applied: annotation(v1alpha1.AppliedReplicasAnnotation), Excess: annotation(v1alpha1.AppliedExcessAnnotation),
	}
}

// Patches returns JSON patches that raise replicas if the basis of the raise has not changed. At
// most one of them succeeds. There is one for each form in which replicas can be stored: clients
// with Go types omit 0, others write it.
func (r Raise) Patches() [][]byte {
	if r.Pool.Basis.Replicas == 0 {
		return [][]byte{r.jsonPatch(0), r.jsonPatch(nil)}
	}
	return [][]byte{r.jsonPatch(r.Pool.Basis.Replicas)}
}

// jsonPatch tests for stored replicas. If growth is held until it is split, the patch exempts this
// raise from that.
func (r Raise) jsonPatch(stored any) []byte {
	basis, after := r.Pool.Basis, r.changedFields()
	operations := []operation{
		{"test", "/metadata/uid", basis.UID},
		{"test", "/metadata/generation", basis.Generation},
		{"test", "/spec/replicas", stored},
		{"test", annotationPath(v1alpha1.BoundsAnnotation), basis.Bounds},
		{"test", annotationPath(v1alpha1.AppliedReplicasAnnotation), basis.Applied},
		{"test", annotationPath(v1alpha1.AppliedExcessAnnotation), basis.Excess},
		{"add", "/spec/replicas", after.Spec.Replicas},
	}
	if r.Pool.Applied != nil {
		operations = append(operations, operation{"add", annotationPath(v1alpha1.AppliedReplicasAnnotation), after.Annotations[v1alpha1.AppliedReplicasAnnotation]})
	}
	if r.Pool.Inclusive && basis.Excess != nil {
		operations = append(operations, operation{"add", annotationPath(v1alpha1.AppliedExcessAnnotation), after.Annotations[v1alpha1.AppliedExcessAnnotation]})
	}
	if len(r.Claimed) > 0 {
		operations = append(operations, operation{"add", annotationPath(v1alpha1.ClaimedAnnotation), r.claims().String()})
	}
	raw, err := json.Marshal(operations)
	if err != nil {
		panic(fmt.Sprintf("encode a patch: %v", err)) // texts and numbers always encode
	}
	return raw
}

// changedFields returns a MachineDeployment with only the replicas and annotations after the raise.
func (r Raise) changedFields() *v1alpha1.MachineDeployment {
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

// claims are those after the raise.
func (r Raise) claims() v1alpha1.Claims {
	return v1alpha1.Claims{Replicas: int(pool.Workload(r.changedFields(), r.changedFields().Spec.Replicas)), Machines: slices.Concat(r.Pool.Claimed, r.Claimed)}
}

// annotationPath returns the JSON pointer of an annotation.
func annotationPath(key string) string {
	return "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// After returns a copy of a MachineDeployment as it is after the raise.
func (r Raise) After(d *v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment {
	after := d.DeepCopy()
	pool.Release(after, int32(r.By))
	if len(r.Claimed) > 0 {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.ClaimedAnnotation, r.claims().String())
	}
	return after
}

// Withdraws reports whether the pod loses the nomination that it has.
func (n Nomination) Withdraws() bool { return n.Node == "" }

// Patch returns a merge patch of the pod. It changes only the pod that was read; to withdraw a
// nomination, only what it was then.
func (n Nomination) Patch() []byte {
	metadata, status := map[string]any{"uid": n.Pod.Object.UID}, map[string]any{"nominatedNodeName": n.Node}
	if n.Withdraws() {
		metadata["resourceVersion"], status["nominatedNodeName"] = n.Pod.Object.ResourceVersion, nil
	}
	raw, err := json.Marshal(map[string]any{"metadata": metadata, "status": status})
	if err != nil {
		panic(fmt.Sprintf("encode a patch: %v", err)) // texts always encode
	}
	return raw
}
