// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// federatedCRD has fields of a HorizontalPodAutoscaler that are copied to clusters as they are.
const federatedCRD = "autoscaling.evenkeel.dev_federatedhorizontalpodautoscalers.yaml"

// copied has these fields, typed, so that controller-gen makes their schema.
const copied = `// +groupName=copied.evenkeel.dev
package v1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
type Copied struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
	Spec Spec ` + "`json:\"spec\"`" + `
}

type Spec struct {
	Metrics  []autoscalingv2.MetricSpec                       ` + "`json:\"metrics\"`" + `
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior ` + "`json:\"behavior\"`" + `
}
`

type node = map[string]any

// describeCopied adds the schema of metrics and behavior to the CRD, so that kubectl explains them. The Go type
// keeps them as raw JSON, and the schema takes everything: clusters may know more fields, and each API server
// judges what it gets.
func describeCopied(staged string) error {
	folder := filepath.Join(staged, "copied", "v1")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "types.go"), []byte(copied), 0o644); err != nil {
		return err
	}
	if err := tool(staged, "controller-gen", "crd", "paths=./copied/...", "output:crd:dir=copied"); err != nil {
		return err
	}
	_, typed, err := readCRD(filepath.Join(staged, "copied", "copied.evenkeel.dev_copieds.yaml"))
	if err != nil {
		return err
	}
	file := filepath.Join(staged, crds, federatedCRD)
	crd, ours, err := readCRD(file)
	if err != nil {
		return err
	}
	for field, into := range map[string]node{"metrics": ours["metrics"].(node)["items"].(node), "behavior": ours["behavior"].(node)} {
		from := typed[field].(node)
		if items, ok := from["items"].(node); ok {
			from = items
		}
		loosen(from)
		into["properties"] = from["properties"]
	}
	text, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), text...), 0o644)
}

// readCRD reads a CRD and the properties of its spec.
func readCRD(file string) (crd, spec node, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", file, err)
	}
	version := crd["spec"].(node)["versions"].([]any)[0].(node)
	whole := version["schema"].(node)["openAPIV3Schema"].(node)["properties"].(node)
	return crd, whole["spec"].(node)["properties"].(node), nil
}

// loosen keeps of a schema what describes, and drops what an autoscaler's API does not check in the same way.
// Quantities may be any number, which no type of a schema allows.
func loosen(s node) {
	quantity := s["x-kubernetes-int-or-string"] == true
	for key := range s {
		switch key {
		case "description", "type", "format", "properties", "items", "additionalProperties":
		default:
			delete(s, key)
		}
	}
	s["nullable"] = true
	if s["properties"] != nil || quantity {
		s["x-kubernetes-preserve-unknown-fields"] = true
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, ok := s[key].(node); ok {
			loosen(inner)
		}
	}
	properties, _ := s["properties"].(node)
	for _, inner := range properties {
		loosen(inner.(node))
	}
}
