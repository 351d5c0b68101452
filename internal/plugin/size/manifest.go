// SPDX-License-Identifier: Apache-2.0

package size

import (
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// Unnamed stands for a MachineDeployment in a Reserve if none was named.
const Unnamed = "your-machinedeployment"

// Manifest is a Reserve without status.
type Manifest struct {
	APIVersion string               `json:"apiVersion"`
	Kind       string               `json:"kind"`
	Metadata   Metadata             `json:"metadata"`
	Spec       v1alpha1.ReserveSpec `json:"spec"`
}

// Metadata is what a Manifest names.
type Metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

func newManifest(q Question, p sizing.Policy) *Manifest {
	m := &Manifest{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Reserve", Metadata: Metadata{Name: q.Name, Namespace: q.Pool.Namespace},
		Spec: v1alpha1.ReserveSpec{Replicas: int32(p.Machines), Schedules: p.Schedules},
	}
	switch {
	case q.WorkerPool != "":
		m.Spec.Pools.WorkerPools = []string{q.WorkerPool}
	case q.Pool.Name != "":
		m.Spec.Pools.Names = []string{q.Pool.Name}
	default:
		m.Spec.Pools.Names = []string{Unnamed}
	}
	return m
}

// YAML is what kubectl apply reads.
func (m Manifest) YAML() (string, error) {
	text, err := yaml.Marshal(m)
	return string(text), err
}
