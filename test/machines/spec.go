// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

const (
	registryPort = 5000
	kubeletPort  = 10250

	// ownDir and programsDir are where a machine finds its folder and the programs: what is in /var or /run
	// of this computer is out of its sight.
	ownDir      = "/run/machine"
	programsDir = "/run/programs"
)

// Files in the folder of a machine.
const (
	specFile        = "machine.json"
	kubeconfigFile  = "kubeconfig"
	apiServerSocket = "apiserver.sock"
	registrySocket  = "registry.sock"
	kubeletSocket   = "kubelet.sock"
	// haltedFile stops its container runtime while it exists.
	haltedFile = "halted"
)

// spec is what a machine is. It is in its folder, for its init.
type spec struct {
	Name, ProviderID string
	// Dir is the machine's folder, and Programs that of what it runs.
	Dir, Programs string
	// Address is that of the Node. It is unique in the cluster.
	Address string
	// Cgroup is the path of its cgroup.
	Cgroup string
	// APIServer is the port on which API server's kubeconfig expects it.
	APIServer int
	Labels    map[string]string
	Taints    []corev1.Taint
	// Pods is how many may run at most. Reserved is what the Node has less than this computer.
	Pods     int64
	Reserved map[string]string
	// Disk limits its disk in bytes, which is in memory then; 0 for a folder of this computer.
	Disk int64
	// CA is the certificate in PEM of who may be a client of its kubelet.
	CA string
}

func (s *spec) file(name string) string { return filepath.Join(s.Dir, name) }

func (s *spec) write() error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode machine %s: %w", s.Name, err)
	}
	return os.WriteFile(s.file(specFile), raw, 0o600)
}

func readSpec(dir string) (*spec, error) {
	raw, err := os.ReadFile(filepath.Join(dir, specFile))
	if err != nil {
		return nil, err
	}
	s := new(spec)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("read %s: %w", specFile, err)
	}
	return s, nil
}
