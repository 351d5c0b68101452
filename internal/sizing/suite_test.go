// SPDX-License-Identifier: Apache-2.0

package sizing_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/test/synthetic"
)

func TestSizing(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Sizing")
}

const (
	boot     = 2 * time.Minute
	released = 300 * time.Millisecond
	up       = 10 * time.Second
)

// usual is a machine of four CPUs, with an autoscaler, for a day from the first Monday on.
func usual(changes ...func(*sizing.Setup)) sizing.Setup {
	s := sizing.Setup{
		Machine: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")},
		Boot:    []time.Duration{boot}, Release: released,
		Autoscaler: &sizing.Autoscaler{Up: up, Down: 10 * time.Minute},
		From:       synthetic.Monday, To: synthetic.Monday.AddDate(0, 0, 1),
		BootPatience: 15 * time.Minute,
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func bounded(low, high int) func(*sizing.Setup) {
	return func(s *sizing.Setup) { s.Min, s.Max = low, high }
}

func unscaled(s *sizing.Setup) { s.Autoscaler = nil }

// hanging lets each second machine boot for longer than patience lasts.
func hanging(s *sizing.Setup) { s.Boot = []time.Duration{boot, 40 * time.Minute} }

// pods are created some time after the beginning.
func pods(after time.Duration, count int, cpu int64, lasts time.Duration) demand.Pods {
	return demand.Pods{Created: synthetic.Monday.Add(after), CPU: cpu, Memory: 1 << 30, Lasts: lasts, Count: count}
}

func outcome(trace demand.Trace, setup sizing.Setup, policy sizing.Policy) sizing.Outcome {
	GinkgoHelper()
	o, err := sizing.Run(trace, setup, policy)
	Expect(err).NotTo(HaveOccurred())
	return o
}

func drawnSetup(t *rapid.T) sizing.Setup {
	s := usual()
	s.Boot = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(1, 600).Draw(t, "boot")) * time.Second
	}), 1, 3).Draw(t, "boots")
	s.Release = time.Duration(rapid.IntRange(0, 2000).Draw(t, "release")) * time.Millisecond
	s.To = s.From.Add(time.Duration(rapid.IntRange(1, 12).Draw(t, "hours")) * time.Hour)
	if rapid.Bool().Draw(t, "unscaled") {
		s.Autoscaler = nil
	}
	if rapid.Bool().Draw(t, "bounded") {
		s.Max = rapid.IntRange(1, 20).Draw(t, "max")
		s.Min = rapid.IntRange(0, min(3, s.Max)).Draw(t, "min")
	}
	return s
}

// drawnTrace has pods that begin before the time that counts, and after it. With equal pods, each
// needs a machine of its own, for equally long.
func drawnTrace(t *rapid.T, equal bool) demand.Trace {
	var trace demand.Trace
	lasts := time.Duration(rapid.IntRange(0, 7200).Draw(t, "lasts")) * time.Second
	for range rapid.IntRange(0, 25).Draw(t, "rows") {
		p := pods(time.Duration(rapid.IntRange(-3600, 13*3600).Draw(t, "after"))*time.Second, rapid.IntRange(1, 6).Draw(t, "count"), 3000, lasts)
		if !equal {
			p.CPU = int64(rapid.IntRange(0, 5000).Draw(t, "cpu"))
			p.Memory = int64(rapid.IntRange(0, 20).Draw(t, "memory")) << 30
			p.Lasts = time.Duration(rapid.IntRange(0, 7200).Draw(t, "lasts")) * time.Second
		}
		trace = append(trace, p)
	}
	trace.Sort()
	return trace
}
