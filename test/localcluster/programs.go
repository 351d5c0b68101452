// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// healthLimit is how long a program may take until it answers /healthz.
const healthLimit = time.Minute

// Tags are the build tags of our binaries. Without this one, gRPC includes golang.org/x/net/trace
// with html/template, which calls methods by name. The linker then has to keep every exported
// method of every type, and the manager is 1.6 times as large.
const Tags = "grpcnotrace"

// Workloads is the binary for Balancers and federated autoscalers.
const Workloads = "evenkeel-workloads"

// Program is a controller with machine-controller-manager's flags, ours or a stock one, or [Workloads].
type Program struct {
	// Name of the process.
	Name string
	// Package to build, as an argument of go build; default ./cmd/<Name>.
	Package string
	// Source is the folder of the module to build it in; default the repository.
	Source string
	// Binary is the file name of the built program; default that of the package.
	Binary string
	// Kubeconfig for all clusters; default the administrator's.
	Kubeconfig string
	// Flags follow the common ones, and override them.
	Flags []string
}

// RunProgram builds and runs a program as part of the cluster, and returns when it is healthy.
func (c *Cluster) RunProgram(ctx context.Context, program Program) (*Process, error) {
	program.Package = cmp.Or(program.Package, "./"+path.Join("cmd", program.Name))
	program.Binary = cmp.Or(program.Binary, path.Base(program.Package))
	binary, err := c.buildProgram(ctx, program)
	if err != nil {
		return nil, err
	}
	kubeconfig := cmp.Or(program.Kubeconfig, c.Kubeconfig())
	flags := []string{"--control-kubeconfig=" + kubeconfig, "--target-kubeconfig=" + kubeconfig, "--address=127.0.0.1"}
	if path.Base(program.Package) == Workloads {
		flags = []string{"--kubeconfig=" + kubeconfig}
	}
	return c.runHealthy(ctx, program.Name, binary, slices.Concat(flags, []string{"--namespace=default"}, program.Flags))
}

// runHealthy runs a binary that answers /healthz on the port that its last flag sets.
func (c *Cluster) runHealthy(ctx context.Context, name, binary string, flags []string) (*Process, error) {
	port, err := c.Port(name)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	process, err := c.Run(name, binary, append(flags, "--port="+strconv.Itoa(port))...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	url := "http://" + loopback(port) + "/healthz"
	if err := process.WaitUntil(ctx, func(ctx context.Context) error { return healthy(ctx, url) }); err != nil {
		return nil, err
	}
	fmt.Fprintf(c.options.Out, "%s ready %.1fs\n", name, time.Since(begin).Seconds())
	return process, nil
}

func (c *Cluster) buildProgram(ctx context.Context, program Program) (string, error) {
	begin := time.Now()
	binary := filepath.Join(binDir(c.options.Root), program.Binary)
	cmd := exec.CommandContext(ctx, "go", "build", "-tags="+Tags, "-o", binary, program.Package)
	cmd.Dir, cmd.Stdout, cmd.Stderr = cmp.Or(program.Source, c.options.Root), c.options.Out, c.options.Out
	cmd.Env = slices.Concat(roomy, os.Environ())
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w", program.Binary, err)
	}
	fmt.Fprintf(c.options.Out, "%s built %.1fs\n", program.Binary, time.Since(begin).Seconds())
	return binary, nil
}

func healthy(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}
