// SPDX-License-Identifier: Apache-2.0

// Package size measures the search for the size of a reserve, on synthetic weeks, and prints the
// suggestions.
package size

import (
	"context"
	"flag"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/test/synthetic"
)

// New defines the flags of the benchmark and returns the benchmark.
func New(flags *flag.FlagSet) func(context.Context) error {
	weeks := flags.Int("weeks", 4, "number of weeks in each trace")
	goal := flags.Duration("wait-p99", 5*time.Second, "longest wait of 99 in 100 pods")
	return func(context.Context) error { return run(*weeks, *goal) }
}

func run(weeks int, goal time.Duration) error {
	for _, week := range synthetic.Weeks {
		trace := week.Trace(weeks, 1)
		setup := sizing.Setup{
			Machine: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")},
			Boot:    []time.Duration{2 * time.Minute}, Release: 300 * time.Millisecond,
			Autoscaler: &sizing.Autoscaler{Up: 10 * time.Second, Down: 10 * time.Minute},
			From:       synthetic.Monday, To: synthetic.Until(weeks), BootPatience: 15 * time.Minute,
		}
		began := time.Now()
		if _, err := sizing.Run(trace, setup, sizing.Fixed(5)); err != nil {
			return err
		}
		one := time.Since(began)
		report, err := sizing.Size(trace, setup, sizing.Goal{Percentile: 99, Wait: goal, Zone: time.UTC})
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d pods, one simulation %v, all %v\n", week.Name, trace.Count(), one.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		for _, p := range report.Points {
			fmt.Printf("  %3d  %8.0f %8.0f  %6.1fs %6.1fs %6.1fs late %d\n", p.Machines, p.ReserveHours, p.MachineHours, p.Median, p.P99, p.Longest, p.Late)
		}
		if report.Amount != nil {
			fmt.Printf("  amount %d: %.0f\n", report.Amount.Machines, report.Amount.ReserveHours)
		}
		if s := report.Schedule; s != nil {
			fmt.Printf("  schedule: %.0f, %.0f%% less, p99 %v\n", s.ReserveHours, 100*(1-s.ReserveHours/report.Amount.ReserveHours), s.P99)
			fmt.Println("   ", s.Machines)
			for _, w := range s.Schedules {
				fmt.Println("   ", w.Name, w.Start, w.End, w.Duration, *w.Replicas)
			}
		}
	}
	return nil
}
