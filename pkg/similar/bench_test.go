// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	. "github.com/evenkeel/evenkeel/pkg/similar"
)

// BenchmarkGroups shows that the time grows with the number of templates, whatever they are like; under pairs, what
// comparing each with each costs for the same ones. ns/template is the figure to look at.
func BenchmarkGroups(b *testing.B) {
	for _, s := range shapes {
		for _, n := range []int{30, 100, 300, 1000, 3000, 10000} {
			templates := s.templates(n)
			b.Run(fmt.Sprintf("hashed/%s/templates=%d", s.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Groups(templates, Defaults())
				}
				perTemplate(b, n)
			})
			// Pairs of more would take longer than anybody waits.
			if n > 1000 {
				continue
			}
			b.Run(fmt.Sprintf("pairs/%s/templates=%d", s.name, n), func(b *testing.B) {
				for b.Loop() {
					byPairs(templates, Defaults())
				}
				perTemplate(b, n)
			})
		}
	}
}

func perTemplate(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/template")
}

// shape says of each template which pool it is of and how far its free memory strays.
type shape struct {
	name string
	at   func(i int) (pool int, stray int64)
}

// shapes are what fleets look like. In the last one every template is chained to all others, which no cloud does: it is
// what costs most.
var shapes = []shape{
	{"pools-of-3", func(i int) (int, int64) { return i / 3, int64(i*7919%1000) * 100 }},
	{"one-pool", func(i int) (int, int64) { return 0, int64(i*7919%1000) * 100 }},
	{"two-sizes", func(i int) (int, int64) { return 0, int64(i*7919%1000)*100 + int64(i%2)*3e6 }},
	{"one-chain", func(i int) (int, int64) { return 0, int64(i*7919%100003) * 100 }},
}

func (s shape) templates(n int) []Template {
	all := make([]Template, n)
	for i := range all {
		pool, stray := s.at(i)
		all[i] = benchTemplate(i, pool, stray)
	}
	return all
}

// benchTemplate is as a Gardener node on AWS shows itself: 7 resources and 20 labels. Free memory strays by so many
// KiB of 16 GiB.
func benchTemplate(i, pool int, stray int64) Template {
	name := fmt.Sprintf("shoot--project--cluster-pool%d-z%d", pool, i)
	all := "cpu=8 memory=32Gi pods=110 ephemeral-storage=100Gi hugepages-1Gi=0 hugepages-2Mi=0 example.com/licence=4"
	m := node(size(all), label("kubernetes.io/hostname="+name, "node.gardener.cloud/machine-name="+name, "kubernetes.io/os=linux",
		"kubernetes.io/arch=amd64", "beta.kubernetes.io/os=linux", "node.kubernetes.io/instance-type=m5.2xlarge",
		"topology.kubernetes.io/zone="+name, "topology.kubernetes.io/region=eu-central-1", "topology.ebs.csi.aws.com/zone="+name,
		fmt.Sprintf("worker.gardener.cloud/pool=pool%d", pool)))
	for k := range 10 {
		label(fmt.Sprintf("example.com/label-%d=value-%d", k, k))(&m)
	}
	t := m.template(name)
	t.Free[corev1.ResourceMemory] = *resource.NewQuantity((16<<20-stray)<<10, resource.BinarySI)
	return t
}
