// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	. "github.com/evenkeel/evenkeel/pkg/fit"
)

// BenchmarkPack is 500 pods that wait, of 20 shapes, with 200 machines in reserve in six groups and 1000 nodes that serve
// and are full; pods that run are read beforehand, as the controller does.
func BenchmarkPack(b *testing.B) {
	for _, c := range []struct {
		name     string
		pods     int
		serving  int
		restrict bool
	}{
		{"pods=500/reserve=200", 500, 0, false},
		{"pods=500/reserve=200/serving=1000", 500, 1000, false},
		{"pods=500/reserve=200/serving=1000/antiaffinity,spread", 500, 1000, true},
		{"pods=1/reserve=200/serving=1000", 1, 1000, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			nodes, groups, pods := benchCluster(c.pods, c.serving, c.restrict)
			opened, work := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				p := pack(NewRoom(nodes), pods, groups)
				opened, work = 0, p.Work
				for _, n := range p.Opened {
					opened += n
				}
				if len(p.Left) > 0 {
					b.Fatalf("%d pods left", len(p.Left))
				}
			}
			b.ReportMetric(float64(opened), "machines")
			b.ReportMetric(float64(work), "work")
			b.ReportMetric(float64(fewest(pods)), "least")
		})
	}
}

// BenchmarkPackDevices is the same, where each machine has eight devices and each pod claims one, two or some.
func BenchmarkPackDevices(b *testing.B) {
	nodes, groups, pods := benchCluster(500, 1000, false)
	for _, n := range nodes[:len(nodes)-1000] {
		row("aaaaaaaa")(n.Object)
	}
	for i, p := range pods {
		wishing([]string{"one", "two", "pair", "either"}[i%20%4])(p.Object)
		pods[i] = read(p.Object)
	}
	opened, work := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		p := pack(NewRoom(nodes), pods, groups)
		opened, work = 0, p.Work
		for _, n := range p.Opened {
			opened += n
		}
		if len(p.Left)+len(p.Unfinished) > 0 {
			b.Fatalf("%d pods left, %d unfinished", len(p.Left), len(p.Unfinished))
		}
	}
	b.ReportMetric(float64(opened), "machines")
	b.ReportMetric(float64(work), "work")
}

func benchCluster(waiting, serving int, restrict bool) (nodes []Node, groups []Group, pods []*Pod) {
	for g := range 6 {
		n, group := reserve(fmt.Sprintf("g%d", g), 34, in(string(rune('a'+g%3))), has("cpu=16 memory=64Gi pods=110"))
		nodes, groups = append(nodes, n...), append(groups, group)
	}
	for i := range serving {
		full := Node{Object: node(fmt.Sprintf("s%d", i), in(string(rune('a'+i%3))), has("cpu=16 memory=64Gi pods=110")), Pods: many(30, fmt.Sprintf("r%d", i), "cpu=532m memory=2Gi")}
		nodes = append(nodes, full)
	}
	for i := range waiting {
		shape := i % 20
		var change []func(*corev1.Pod)
		switch {
		case !restrict:
		case shape == 3:
			change = append(change, apart(hostname, "p3"))
		case shape == 7:
			change = append(change, spread(zone, 1, "p7"))
		case shape == 11:
			change = append(change, spread(hostname, 5, "p11"))
		}
		pods = append(pods, read(pod(fmt.Sprintf("p%d-%d", shape, i), fmt.Sprintf("cpu=%dm memory=%dMi", 200+shape*130, 512+(shape*7%20)*450), change...)))
	}
	return nodes, groups, slices.Clip(pods)
}

// fewest is what no packing can go below, by CPU and memory.
func fewest(pods []*Pod) int {
	var milli, bytes int64
	for _, p := range pods {
		r := p.Object.Spec.Containers[0].Resources.Requests
		milli += r.Cpu().MilliValue()
		bytes += r.Memory().Value()
	}
	return int(max((milli+15999)/16000, (bytes+64<<30-1)/(64<<30)))
}
