// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/evenkeel/evenkeel/test/bench/internal/fleet"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// measure runs each command so often, one after the other, and prints what that took.
func measure(ctx context.Context, cluster *localcluster.Cluster, plugin string, runs int) error {
	access := "--kubeconfig=" + cluster.Kubeconfig()
	fmt.Printf("%-38s %9s %9s %12s\n", "command", "median", "longest", "peak memory")
	for _, command := range []struct {
		name string
		args []string
	}{
		{"kubectl get machines", []string{cluster.Kubectl(), "get", "machines", access}},
		{"evenkeel status", []string{plugin, "status", access}},
		{"evenkeel status, without pods", []string{plugin, "status", "--target-kubeconfig=none", access}},
		{"evenkeel status -o json", []string{plugin, "status", "-o", "json", access}},
		{"evenkeel explain machinedeployment", []string{plugin, "explain", "machinedeployment", fleet.Deployment(0), access}},
	} {
		times, peak, err := repeat(ctx, command.args, runs)
		if err != nil {
			return fmt.Errorf("%s: %w", command.name, err)
		}
		fmt.Printf("%-38s %6d ms %6d ms %8.0f MiB\n", command.name, times[len(times)/2].Milliseconds(), times[len(times)-1].Milliseconds(), peak)
	}
	return nil
}

// repeat runs a command, and returns how long that took, the shortest first, and its memory at
// most, in MiB.
func repeat(ctx context.Context, args []string, runs int) (times []time.Duration, peak float64, err error) {
	for range runs {
		command := exec.CommandContext(ctx, args[0], args[1:]...)
		command.Stdout = io.Discard
		begin := time.Now()
		if err := command.Run(); err != nil {
			return nil, 0, err
		}
		times = append(times, time.Since(begin))
		if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak = max(peak, float64(usage.Maxrss)/1024)
		}
	}
	slices.Sort(times)
	return times, peak, nil
}
