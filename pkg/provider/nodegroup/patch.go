// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"encoding/json"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// mergePatch returns a change as one merge patch that takes effect only on the version that it was
// decided on.
func mergePatch(c plan.Change, base *v1alpha1.MachineDeployment) ([]byte, error) {
	metadata := map[string]any{"resourceVersion": base.ResourceVersion, "uid": base.UID}
	if len(c.Annotations) > 0 {
		metadata["annotations"] = annotationsOf(c.Annotations)
	}
	body := map[string]any{"metadata": metadata}
	if c.From != c.To {
		body["spec"] = map[string]any{"replicas": c.Replicas}
	}
	return json.Marshal(body)
}

// annotationsOf has null, which removes an annotation, for an empty value.
func annotationsOf(set map[string]string) map[string]any {
	annotations := map[string]any{}
	for key, value := range set {
		if annotations[key] = value; value == "" {
			annotations[key] = nil
		}
	}
	return annotations
}
