// SPDX-License-Identifier: Apache-2.0

// Command demo tells and measures the story of a reserve on a running local cluster, in about three
// minutes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := demo(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// chapters are told in this order. Each leaves the cluster as the next one wants it.
var chapters = []struct {
	title string
	tell  func(*stage, context.Context) error
}{
	{"A pool in three zones", (*stage).pool},
	{"Two spare machines in each zone", (*stage).reserve},
	{"Images on the spare machines of one zone, before pods come", (*stage).prepared},
	{"A rolling update of one zone: each pod moves once", (*stage).rollout},
	{"A burst of six pods, for which no serving machine has room", (*stage).burst},
	{"The same burst in a zone without a reserve", (*stage).plainBurst},
	{"A zone fails", (*stage).outage},
}

func demo(ctx context.Context) error {
	begin := time.Now()
	cluster, err := localcluster.Open(localcluster.Options{Name: os.Getenv("CLUSTER")})
	if err != nil {
		return err
	}
	s, err := newStage(cluster)
	if err != nil {
		return err
	}
	if err := s.removeLeftovers(ctx); err != nil {
		return fmt.Errorf("remove what an earlier demo left: %w", err)
	}
	for i, c := range chapters {
		fmt.Printf("\n%d. %s\n\n", i+1, c.title)
		if err := c.tell(s, ctx); err != nil {
			return errors.Join(fmt.Errorf("chapter %d, %s: %w", i+1, c.title, err), fmt.Errorf("the cluster is still running: make status shows where it logs, and make reset deletes it"))
		}
	}
	return s.showResults(ctx, time.Since(begin))
}

// showResults shows what was measured, and what to do with the cluster.
func (s *stage) showResults(ctx context.Context, took time.Duration) error {
	fmt.Printf("\nMeasured in %.0f s:\n\n", took.Seconds())
	if err := s.measured.print(os.Stdout); err != nil {
		return err
	}
	fmt.Println("\nMachines in this demo boot in 2 to 5 s. In a cloud, they take one to several minutes: without a reserve, a burst waits that\nmuch longer; with a reserve, it does not.")
	fmt.Printf(`
The cluster keeps running. Next, try:

  export KUBECONFIG=%s
  export PATH=%s:$PATH

  kubectl evenkeel status                                the overview shown above; top: live; ui: in a browser
  kubectl scale machinedeployment pool-z1 --replicas=5   a reserve machine serves at once
  make status                                            which processes run, and where they log
  make down                                              stop the cluster; make reset also deletes its data
`, s.cluster.Kubeconfig(), s.bin)
	return ctx.Err()
}
