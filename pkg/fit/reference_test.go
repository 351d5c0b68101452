// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/fit"
)

// reference answers from the objects alone, anew each time, by the wording of the API.
type reference struct {
	nodes []*corev1.Node
	runs  map[string][]*corev1.Pod
}

func referenceOf(nodes []Node) reference {
	r := reference{runs: map[string][]*corev1.Pod{}}
	for _, n := range nodes {
		r.nodes = append(r.nodes, n.Object)
		for _, p := range n.Pods {
			r.runs[n.Object.Name] = append(r.runs[n.Object.Name], p.Object)
		}
	}
	return r
}

// obstacles are all that keep a pod from a node; taints of these keys count as gone.
func (r reference) obstacles(p *corev1.Pod, n *corev1.Node, without ...string) []Obstacle {
	var all []Obstacle
	add := func(is bool, o Obstacle) {
		if is {
			all = append(all, o)
		}
	}
	add(r.full(p, n), Full)
	add(!labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(n.Labels)), Elsewhere)
	for _, t := range n.Spec.Taints {
		add(!slices.Contains(without, t.Key) && !slices.ContainsFunc(p.Spec.Tolerations, func(own corev1.Toleration) bool { return own.Key == t.Key }), Tainted)
	}
	for _, other := range r.runs[n.Name] {
		for _, x := range portsUsed(other) {
			for _, y := range portsUsed(p) {
				add(x.HostPort == y.HostPort && (x.HostIP == y.HostIP || x.HostIP == "" || y.HostIP == ""), PortTaken)
			}
		}
	}
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		add(!r.accompanied(p, n, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution), Lonely)
	}
	add(r.repelled(p, n), Repelled)
	for i := range p.Spec.TopologySpreadConstraints {
		add(!r.even(p, n, p.Spec.TopologySpreadConstraints, i), Uneven)
	}
	add(r.unequipped(p, n), NoDevices)
	return all
}

// portsUsed are the ports of the containers that run as long as the pod does.
func portsUsed(p *corev1.Pod) []corev1.ContainerPort {
	all := slices.Clone(p.Spec.Containers[0].Ports)
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil {
			all = append(all, c.Ports...)
		}
	}
	return all
}

func (r reference) full(p *corev1.Pod, n *corev1.Node) bool {
	if int64(len(r.runs[n.Name]))+1 > n.Status.Allocatable.Pods().Value() {
		return true
	}
	for name, want := range p.Spec.Containers[0].Resources.Requests {
		total := want.DeepCopy()
		for _, other := range r.runs[n.Name] {
			total.Add(other.Spec.Containers[0].Resources.Requests[name])
		}
		if have := n.Status.Allocatable[name]; !want.IsZero() && total.Cmp(have) > 0 {
			return true
		}
	}
	return false
}

func named(selector *metav1.LabelSelector, by, p *corev1.Pod) bool {
	return by.Namespace == p.Namespace && labels.SelectorFromSet(selector.MatchLabels).Matches(labels.Set(p.Labels))
}

func same(key string, a, b *corev1.Node) bool {
	x, ok := a.Labels[key]
	y, too := b.Labels[key]
	return ok && too && x == y
}

func (r reference) repelled(p *corev1.Pod, n *corev1.Node) bool {
	away := func(a, b *corev1.Pod, at *corev1.Node) bool {
		if a.Spec.Affinity == nil || a.Spec.Affinity.PodAntiAffinity == nil {
			return false
		}
		return slices.ContainsFunc(a.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, func(t corev1.PodAffinityTerm) bool {
			return named(t.LabelSelector, a, b) && same(t.TopologyKey, at, n)
		})
	}
	for _, m := range r.nodes {
		for _, other := range r.runs[m.Name] {
			if away(p, other, m) || away(other, p, m) {
				return true
			}
		}
	}
	return false
}

func (r reference) accompanied(p *corev1.Pod, n *corev1.Node, terms []corev1.PodAffinityTerm) bool {
	byAll := func(other *corev1.Pod) bool {
		return !slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return !named(t.LabelSelector, p, other) })
	}
	anywhere, missing := false, false
	for _, t := range terms {
		if _, ok := n.Labels[t.TopologyKey]; !ok {
			return false
		}
		there := false
		for _, m := range r.nodes {
			if _, labelled := m.Labels[t.TopologyKey]; labelled && slices.ContainsFunc(r.runs[m.Name], byAll) {
				anywhere = true
				there = there || same(t.TopologyKey, m, n)
			}
		}
		missing = missing || !there
	}
	return !missing || !anywhere && byAll(p)
}

func (r reference) even(p *corev1.Pod, n *corev1.Node, all []corev1.TopologySpreadConstraint, i int) bool {
	counts := map[string]int{}
	for _, m := range r.nodes {
		counting := labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(m.Labels))
		for _, c := range all {
			_, labelled := m.Labels[c.TopologyKey]
			counting = counting && labelled
		}
		if counting {
			counts[m.Labels[all[i].TopologyKey]] += 0
			for _, other := range r.runs[m.Name] {
				if named(all[i].LabelSelector, p, other) {
					counts[m.Labels[all[i].TopologyKey]]++
				}
			}
		}
	}
	least := -1
	for _, count := range counts {
		if least < 0 || count < least {
			least = count
		}
	}
	value, ok := n.Labels[all[i].TopologyKey]
	own := 0
	if named(all[i].LabelSelector, p, p) {
		own = 1
	}
	return ok && counts[value]+own-max(least, 0) <= int(all[i].MaxSkew)
}

// Clusters of few nodes and pods in which every rule comes up often.

var apps = []string{"x", "y", "z"}

func drawNode(t *rapid.T, name string) *corev1.Node {
	n := node(name, has(fmt.Sprintf("cpu=%d pods=%d", rapid.IntRange(1, 4).Draw(t, "cpu"), rapid.IntRange(1, 5).Draw(t, "pods"))))
	if where := rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "zone"); where != "" {
		in(where)(n)
	}
	if rapid.IntRange(0, 3).Draw(t, "tainted") == 0 {
		tainted("colour")(n)
	}
	if rapid.Bool().Draw(t, "device") {
		has("example.com/gpu=2")(n)
	}
	return n
}

func drawPod(t *rapid.T, number int) *corev1.Pod {
	p := pod(fmt.Sprintf("%s-%d", rapid.SampledFrom(apps).Draw(t, "app"), number), fmt.Sprintf("cpu=%d", rapid.IntRange(0, 3).Draw(t, "cpu")))
	key := func() string { return rapid.SampledFrom([]string{zone, hostname}).Draw(t, "key") }
	other := func() string { return rapid.SampledFrom(apps).Draw(t, "other") }
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		switch rapid.IntRange(0, 7).Draw(t, "rule") {
		case 0:
			apart(key(), other())(p)
		case 1:
			together(key(), other())(p)
		case 2:
			spread(key(), int32(rapid.IntRange(1, 2).Draw(t, "skew")), other())(p)
		case 3:
			tolerant("colour")(p)
		case 4:
			selecting(zone, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "selected"))(p)
		case 5:
			listening(80, at(rapid.SampledFrom([]string{"", "10.0.0.1", "10.0.0.2"}).Draw(t, "address")))(p)
			if where := rapid.SampledFrom([]string{"container", "sidecar", "init container"}).Draw(t, "listens"); where != "container" {
				inSidecar(where == "sidecar")(p)
			}
		case 6:
			p.Spec.Containers[0].Resources.Requests["example.com/gpu"] = amounts("g=1")["g"]
		case 7:
			important(int32(rapid.IntRange(-1, 2).Draw(t, "priority")))(p)
		}
	}
	return p
}

// drawCluster is nodes with pods, some of them closed in groups, and pods that wait.
func drawCluster(t *rapid.T) (nodes []Node, groups []Group, waiting []*corev1.Pod) {
	number := 0
	pods := func(most int) []*corev1.Pod {
		var all []*corev1.Pod
		for range rapid.IntRange(0, most).Draw(t, "pods") {
			number++
			all = append(all, drawPod(t, number))
		}
		return all
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "open") {
		nodes = append(nodes, Node{Object: drawNode(t, fmt.Sprintf("n-%d", i)), Pods: reads(pods(2)...)})
	}
	for g := range rapid.IntRange(0, 2).Draw(t, "groups") {
		group := Group{Name: fmt.Sprint(g), Limit: rapid.IntRange(0, 4).Draw(t, "limit")}
		for i := range rapid.IntRange(0, 3).Draw(t, "reserve") {
			n := drawNode(t, fmt.Sprintf("g-%d-%d", g, i))
			tainted(reserved)(n)
			group.Nodes = append(group.Nodes, n.Name)
			nodes = append(nodes, Node{Object: n, Closed: true, Without: []string{reserved}, Pods: reads(pods(1)...)})
		}
		groups = append(groups, group)
	}
	return nodes, groups, pods(8)
}
