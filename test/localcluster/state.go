// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// state is what a cluster knows of itself between two processes that deal with it.
type state struct {
	Ports map[string]int `json:"ports"`
	// Kubernetes is the version, as in [Options].
	Kubernetes string `json:"kubernetes,omitempty"`
	// Processes of a detached cluster, in the order of their start.
	Processes []record `json:"processes,omitempty"`
}

func stateFile(dir string) string { return filepath.Join(dir, "cluster.json") }

func loadState(dir string) (*state, error) {
	text, err := os.ReadFile(stateFile(dir))
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	s := &state{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("read state %s: %w", stateFile(dir), err)
	}
	return s, nil
}

// save is atomic: if the process is killed meanwhile, the state on disk stays as it was.
func (s *state) save(dir string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	fresh := stateFile(dir) + ".new"
	if err := os.WriteFile(fresh, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return os.Rename(fresh, stateFile(dir))
}
