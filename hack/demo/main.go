// SPDX-License-Identifier: Apache-2.0

// Command demo shows the main job on a running local cluster: three MachineDeployments, one per zone, bring up their
// machines through machine-controller-manager's own controllers.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/evenkeel/evenkeel/internal/localcluster"
)

const (
	manifest = "examples/three-zones.yaml"
	// limit bounds the wait; machines boot in seconds.
	limit = 3 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context) error {
	cluster, err := localcluster.Open(localcluster.Options{Name: os.Getenv("CLUSTER")})
	if err != nil {
		return err
	}
	fmt.Printf("\n$ kubectl apply -f %s\n", manifest)
	if err := cluster.Apply(ctx, manifest); err != nil {
		return err
	}
	w, err := newWatcher(cluster.Config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := w.untilReady(ctx); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"get", "machinedeployments"},
		{"get", "machines"},
		{"get", "nodes", "-L", "topology.kubernetes.io/zone"},
	} {
		if err := show(ctx, cluster, args...); err != nil {
			return err
		}
	}
	fmt.Printf(`
%s

Go on with:
  export KUBECONFIG=%s
  kubectl scale machinedeployment pool-z1 --replicas=5     watch: kubectl get machines,nodes
  make status                                              what runs, and where it logs
  make down                                                stop it all; make reset forgets the data as well
`, w.summary(), cluster.Kubeconfig())
	return nil
}

// show runs kubectl as a person would.
func show(ctx context.Context, cluster *localcluster.Cluster, args ...string) error {
	fmt.Print("\n$ kubectl")
	for _, arg := range args {
		fmt.Print(" " + arg)
	}
	fmt.Println()
	cmd := exec.CommandContext(ctx, cluster.Kubectl(), append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
