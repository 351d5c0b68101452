// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/sys/unix"
)

// pauseImage is that of the container that holds the namespaces of a pod.
const pauseImage = "127.0.0.1:5000/0b/pause:1"

var containerdConfig = template.Must(template.New("containerd").Parse(`version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
  address = "/run/containerd/containerd.sock"

[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{{.Programs}}"]
    conf_dir = "{{.Dir}}/cni"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    runtime_path = "{{.Programs}}/containerd-shim-runc-v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "{{.Programs}}/plain-runc"
      SystemdCgroup = false

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "{{.Snapshotter}}"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "` + pauseImage + `"
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = "{{.Dir}}/registries"
`))

// registries says that the registry on loopback speaks http.
const registries = `server = "http://127.0.0.1:5000"

[host."http://127.0.0.1:5000"]
  capabilities = ["pull", "resolve"]
`

// network is that of the pods of a machine. Each machine has one of its own.
const network = `{
  "cniVersion": "1.0.0", "name": "pods",
  "plugins": [{
    "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]], "dataDir": "/var/lib/cni"}
  }]
}
`

// never are thresholds of eviction that are not reached: the disk is this computer's.
var never = map[string]string{"imagefs.available": "0%", "imagefs.inodesFree": "0%", "memory.available": "1Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%"}

// kubeletConfig is the configuration of the kubelet. It is JSON, which is YAML.
func (s *spec) kubeletConfig() ([]byte, error) {
	config := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": "127.0.0.1", "port": kubeletPort, "healthzPort": 0,
		"authentication":           map[string]any{"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true}, "x509": map[string]any{"clientCAFile": filepath.Join(ownDir, caFile)}},
		"authorization":            map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"cgroupDriver":             "cgroupfs", "cgroupRoot": s.Cgroup, "failCgroupV1": false, "failSwapOn": false,
		"enforceNodeAllocatable": []string{}, "providerID": s.ProviderID, "registerWithTaints": s.Taints,
		"systemReserved": s.Reserved, "maxPods": s.Pods, "resolvConf": "", "nodeStatusUpdateFrequency": "5s", "syncFrequency": "10s", "shutdownGracePeriod": "0s",
	}
	config["evictionPressureTransitionPeriod"] = "10s"
	if s.Disk == 0 {
		config["evictionHard"], config["imageGCHighThresholdPercent"] = never, 100
	}
	return json.MarshalIndent(config, "", "  ")
}

// kubeletFlags are what the configuration cannot say.
func (s *spec) kubeletFlags() []string {
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		labels = append(labels, key+"="+s.Labels[key])
	}
	return []string{
		"--config=" + s.file("kubelet.json"), "--kubeconfig=" + s.file(kubeconfigFile), "--cert-dir=/var/lib/kubelet/pki",
		"--hostname-override=" + s.Name, "--node-ip=" + s.Address, "--node-labels=" + strings.Join(labels, ","), "--v=2",
	}
}

// writeFiles writes what the programs of the machine read.
func (s *spec) writeFiles(kubeconfig []byte) error {
	for _, dir := range []string{"var", "run", "cni", registryDir} {
		if err := os.MkdirAll(s.file(dir), 0o755); err != nil {
			return err
		}
	}
	var containerd bytes.Buffer
	err := containerdConfig.Execute(&containerd, map[string]string{"Dir": ownDir, "Programs": programsDir, "Snapshotter": s.snapshotter()})
	if err != nil {
		return fmt.Errorf("configure containerd: %w", err)
	}
	kubelet, err := s.kubeletConfig()
	if err != nil {
		return fmt.Errorf("configure kubelet: %w", err)
	}
	for name, text := range map[string][]byte{
		"containerd.toml": containerd.Bytes(), "kubelet.json": kubelet, "cni/10-pods.conflist": []byte(network),
		registryDir + "/hosts.toml": []byte(registries), kubeconfigFile: kubeconfig, caFile: []byte(s.CA),
	} {
		if err := os.WriteFile(s.file(name), text, 0o600); err != nil {
			return err
		}
	}
	return s.write()
}

const (
	registryDir = "registries/127.0.0.1:5000"
	caFile      = "ca.crt"
)

// snapshotter returns that of containerd: an overlay cannot be on another one.
func (s *spec) snapshotter() string {
	var fs unix.Statfs_t
	if err := unix.Statfs(s.Dir, &fs); err == nil && fs.Type == unix.OVERLAYFS_SUPER_MAGIC && s.Disk == 0 {
		return "native"
	}
	return "overlayfs"
}
