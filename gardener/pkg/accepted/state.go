// SPDX-License-Identifier: Apache-2.0

// Package accepted contains the last valid configuration, which the extension keeps in the status
// of an Extension. The webhook acts on nothing else. Gardener moves it with a control plane to
// another seed.
package accepted

import (
	"encoding/json"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
)

// State of one Shoot.
type State struct {
	// Config is valid, and has defaults.
	Config *v1alpha1.EvenkeelConfig
	// Drained reports whether the extension is being removed and no reserve is left, so that the
	// stock image is to be restored.
	Drained bool
}

// wire is the serialized state.
type wire struct {
	Config  runtime.RawExtension `json:"config"`
	Drained bool                 `json:"drained,omitempty"`
}

// Read returns the state of an Extension; nil if no configuration was ever accepted. During an
// update of the extension, or after a downgrade, a later version may have written it: fields that
// only that version knows are ignored.
func Read(ex *extensionsv1alpha1.Extension) (*State, error) {
	if ex.Status.State == nil || len(ex.Status.State.Raw) == 0 {
		return nil, nil
	}
	var w wire
	if err := json.Unmarshal(ex.Status.State.Raw, &w); err != nil {
		return nil, fmt.Errorf("decode status.state: %w", err)
	}
	config, err := v1alpha1.DecodeKnown(w.Config.Raw)
	if err != nil {
		return nil, fmt.Errorf("decode status.state: %w", err)
	}
	return &State{Config: config, Drained: w.Drained}, nil
}

// Write sets the state in the status of an Extension. An equal state is not written again: the API
// server orders its fields differently.
func (s *State) Write(ex *extensionsv1alpha1.Extension) error {
	if there, err := Read(ex); err == nil && equality.Semantic.DeepEqual(there, s) {
		return nil
	}
	config, err := v1alpha1.Encode(s.Config)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(wire{Config: runtime.RawExtension{Raw: config}, Drained: s.Drained})
	if err != nil {
		return fmt.Errorf("encode status.state: %w", err)
	}
	ex.Status.State = &runtime.RawExtension{Raw: raw}
	return nil
}

// WantsUpstream reports whether a Shoot is to have an unmodified cluster-autoscaler. It is not
// while the Shoot leaves the extension or the seed.
func (s *State) WantsUpstream(ex *extensionsv1alpha1.Extension) bool {
	if s == nil || s.Drained || s.Config.Autoscaler != v1alpha1.AutoscalerUpstream || ex.DeletionTimestamp != nil {
		return false
	}
	last := ex.Status.LastOperation
	return last == nil || last.Type != gardencorev1beta1.LastOperationTypeMigrate
}
