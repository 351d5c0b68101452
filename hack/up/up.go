// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/evenkeel/evenkeel/test/localcluster"
	"github.com/evenkeel/evenkeel/test/machines"
)

// up leaves a cluster that ran before as it is, if it fails or is interrupted, and stops one that
// did not.
func up(ctx context.Context, o options) error {
	begin := time.Now()
	if o.nodes != "" && o.nodes != "real" {
		return fmt.Errorf("nodes %q: want real, or nothing", o.nodes)
	}
	if o.nodes != "" {
		if err := machines.Check(); err != nil {
			return err
		}
	}
	clusterOptions := localcluster.Options{Name: o.name, Audit: o.audit, Detached: true, Out: os.Stdout, RealNodes: o.nodes != ""}
	_, err := localcluster.Open(clusterOptions)
	fresh := err != nil
	cluster, err := localcluster.Start(ctx, clusterOptions)
	if err != nil {
		return err
	}
	err = installOurs(ctx, cluster)
	if err == nil && o.nodes != "" {
		_, err = cluster.RunMachines(ctx)
	}
	if err != nil {
		if fresh {
			err = errors.Join(err, cluster.Stop())
		}
		return err
	}
	fmt.Printf("up in %.1fs\n", time.Since(begin).Seconds())
	if !o.brief {
		printNext(cluster, o.name)
	}
	return nil
}

// ours are the programs of cmd that a cluster runs, in the order of their start.
var ours = []string{"machine-controller", "machine-controller-manager", "evenkeel-workloads"}

// installOurs brings our part into the cluster.
func installOurs(ctx context.Context, cluster *localcluster.Cluster) error {
	for _, folder := range []string{"kubernetes/crds", "kubernetes/policies"} {
		begin := time.Now()
		if err := cluster.Apply(ctx, folder); err != nil {
			return err
		}
		fmt.Printf("%s applied %.1fs\n", folder, time.Since(begin).Seconds())
	}
	for _, name := range ours {
		if _, err := cluster.RunProgram(ctx, localcluster.Program{Name: name}); err != nil {
			return err
		}
	}
	return buildPlugin(ctx, filepath.Join(filepath.Dir(cluster.Kubectl()), plugin))
}

// plugin is kubectl's, which finds it beside itself by its name.
const plugin = "kubectl-evenkeel"

func buildPlugin(ctx context.Context, path string) error {
	root, err := localcluster.FindRoot()
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/"+plugin)
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", plugin, err, output)
	}
	return nil
}

func printNext(cluster *localcluster.Cluster, name string) {
	suffix := ""
	if name != localcluster.DefaultName {
		suffix = " CLUSTER=" + name
	}
	fmt.Printf(`
  export KUBECONFIG=%s
  export PATH=%s:$PATH   # a kubectl of the cluster's version, and our plugin

  kubectl apply -f examples/three-zones.yaml
  kubectl get machinedeployments,machinesets,machines,nodes
  kubectl evenkeel status

  make down%s           # stop it;  make reset%s  forgets it as well
`, cluster.Kubeconfig(), filepath.Dir(cluster.Kubectl()), suffix, suffix)
}
