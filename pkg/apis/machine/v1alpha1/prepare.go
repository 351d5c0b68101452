// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	"sigs.k8s.io/yaml"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

const (
	// MaxPreparations is how many preparations a list has at most.
	MaxPreparations = 10
	// maxPreparationText is how many characters the annotation has at most.
	maxPreparationText = 8192
)

// ParsePreparations reads the value of [PrepareAnnotation], a list in YAML or JSON.
func ParsePreparations(text string) ([]autoscaling.Preparation, error) {
	if len(text) > maxPreparationText {
		return nil, fmt.Errorf("it has more than %d characters", maxPreparationText)
	}
	var all []autoscaling.Preparation
	if err := yaml.UnmarshalStrict([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("write a list, for example [{namespace: shop, workloads: [Deployment/web]}]: %w", err)
	}
	if len(all) > MaxPreparations {
		return nil, fmt.Errorf("it has %d entries; at most %d are possible", len(all), MaxPreparations)
	}
	for i, p := range all {
		if err := p.Validate(); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
	}
	return all, nil
}
