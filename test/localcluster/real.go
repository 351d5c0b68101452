// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// Machines is the process that runs real machines.
	Machines = "machines"
	// ConnectSocket, in the cluster's folder, is where the API server finds it to reach kubelets.
	ConnectSocket = "machines.sock"
	// IdleProgram is what the images of its registry run, among the programs of real machines.
	IdleProgram = "idle"

	egressFlag = "--egress-selector-config-file="
	egress     = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds: {udsName: ` + ConnectSocket + `} # from the folder in which the API server runs
`
)

func (c *Cluster) egressConfig() string { return filepath.Join(c.Dir(), "egress.yaml") }

// buildNodes builds what real machines run, unless it is up to date.
func (c *Cluster) buildNodes(ctx context.Context) error {
	if err := os.MkdirAll(c.NodePrograms(), 0o755); err != nil {
		return err
	}
	if err := build(ctx, c.options, nodePrograms); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(c.NodePrograms(), IdleProgram), "./test/machines/idle")
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.options.Root, c.options.Out, c.options.Out
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w", IdleProgram, err)
	}
	return nil
}

// RunMachines builds and runs what runs real machines, in a cluster that was started with RealNodes.
func (c *Cluster) RunMachines(ctx context.Context) (*Process, error) {
	if !slices.ContainsFunc(c.Process(APIServer).record.Args, func(flag string) bool { return strings.HasPrefix(flag, egressFlag) }) {
		return nil, errors.New("run machines: the cluster was started without real nodes; stop it first")
	}
	if err := c.buildNodes(ctx); err != nil {
		return nil, err
	}
	binary, err := c.buildProgram(ctx, Program{Package: "./test/machines/cmd", Binary: filepath.Join(nodesDir, Machines)})
	if err != nil {
		return nil, err
	}
	if err := linkBinary(filepath.Join(c.NodePrograms(), "plain-runc"), Machines); err != nil {
		return nil, err
	}
	return c.runHealthy(ctx, Machines, binary, []string{"--root=" + c.options.Root, "--cluster=" + c.options.Name})
}

// NodePrograms is the folder of what real machines run.
func (c *Cluster) NodePrograms() string { return filepath.Join(binDir(c.options.Root), nodesDir) }

// Cgroup is the path of the cgroup of all real machines. Clusters of different folders have different ones.
func (c *Cluster) Cgroup() string {
	sum := sha256.Sum256([]byte(c.Dir()))
	return "evenkeel-" + hex.EncodeToString(sum[:6])
}
