// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

var errDown = errors.New("not all of the cluster runs")

// status fails if anything of the cluster is down, for the use of scripts.
func status(_ context.Context, o options) error {
	cluster, err := localcluster.Load(localcluster.Options{Name: o.name})
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cluster %s: %w: there is none", o.name, errDown)
	}
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "PROCESS\tPID\tLOG")
	down := !cluster.Running()
	for _, p := range cluster.Processes() {
		pid := "down"
		if n := p.PID(); n != 0 {
			pid = fmt.Sprint(n)
		} else {
			down = true
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", p.Name(), pid, p.Log())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Printf("\nexport KUBECONFIG=%s\n", cluster.Kubeconfig())
	if down {
		return fmt.Errorf("cluster %s: %w", o.name, errDown)
	}
	return nil
}

// down does what is asked with a cluster, if there is one.
func down(o options, how func(*localcluster.Cluster) error) error {
	cluster, err := localcluster.Load(localcluster.Options{Name: o.name, Out: os.Stdout})
	if errors.Is(err, os.ErrNotExist) {
		fmt.Printf("cluster %s: there is none\n", o.name)
		return nil
	}
	if err != nil {
		return err
	}
	if err := how(cluster); err != nil {
		return err
	}
	fmt.Printf("cluster %s is down\n", o.name)
	return nil
}
