// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/test/laws"
)

func TestMain(m *testing.M) { laws.Main(m, 300) }

func TestFit(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Fit")
}

const (
	hostname = corev1.LabelHostname
	zone     = corev1.LabelTopologyZone
	reserved = "reserved"
)

// amounts reads "cpu=4 memory=8Gi".
func amounts(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, word := range strings.Fields(text) {
		name, amount, _ := strings.Cut(word, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

// node has 4 CPUs, 8Gi and room for 10 pods, unless said otherwise.
func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{hostname: name}}}
	n.Status.Allocatable = amounts("cpu=4 memory=8Gi pods=10")
	for _, f := range change {
		f(n)
	}
	return n
}

func has(text string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for name, q := range amounts(text) {
			n.Status.Allocatable[name] = q
		}
	}
}

func in(place string) func(*corev1.Node) { return labelled(zone, place) }

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func tainted(keys ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for _, key := range keys {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
	}
}

// pod requests something, and is labelled app=<name up to the first dash>.
func pod(name, requests string, change ...func(*corev1.Pod)) *corev1.Pod {
	app, _, _ := strings.Cut(name, "-")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{"app": app}}}
	p.Spec.Containers = []corev1.Container{{Name: "work", Resources: corev1.ResourceRequirements{Requests: amounts(requests)}}}
	for _, f := range change {
		f(p)
	}
	return p
}

// read is a pod as one that waits, in a cluster without volumes, and with the devices of all rows.
func read(p *corev1.Pod) *Pod {
	lookups := cluster{}.lookups()
	lookups.Devices = stocked
	return NewPod(p, lookups)
}

func reads(pods ...*corev1.Pod) []*Pod {
	var all []*Pod
	for _, p := range pods {
		all = append(all, read(p))
	}
	return all
}

// many are so many pods that are alike.
func many(n int, name, requests string, change ...func(*corev1.Pod)) []*Pod {
	var all []*Pod
	for i := range n {
		all = append(all, read(pod(fmt.Sprintf("%s-%d", name, i), requests, change...)))
	}
	return all
}

func app(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func affinity(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

// apart keeps the pod away from others of an app.
func apart(key, name string, change ...func(*corev1.PodAffinityTerm)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		a := affinity(p)
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		list := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, about(key, name, change))
	}
}

// together keeps the pod with others of an app.
func together(key, name string, change ...func(*corev1.PodAffinityTerm)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		a := affinity(p)
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		list := &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, about(key, name, change))
	}
}

func about(key, name string, change []func(*corev1.PodAffinityTerm)) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: app(name)}
	for _, f := range change {
		f(&t)
	}
	return t
}

// spread is a hard constraint over places by a label.
func spread(key string, skew int32, name string, change ...func(*corev1.TopologySpreadConstraint)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: app(name)}
		for _, f := range change {
			f(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

func important(priority int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = ptr.To(priority) }
}

func tolerant(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

// reserve are closed nodes of a group, and the group.
func reserve(name string, n int, change ...func(*corev1.Node)) ([]Node, Group) {
	g := Group{Name: name, Limit: n}
	var nodes []Node
	for i := range n {
		g.Nodes = append(g.Nodes, fmt.Sprintf("%s-%d", name, i))
		nodes = append(nodes, Node{Object: node(g.Nodes[i], append(change, tainted(reserved))...), Closed: true, Without: []string{reserved}})
	}
	return nodes, g
}

// open are nodes as they are.
func open(nodes ...*corev1.Node) []Node {
	var all []Node
	for _, n := range nodes {
		all = append(all, Node{Object: n})
	}
	return all
}

// where tells what runs where, as in "a-0: x-0 x-1, b-0: y-0", and what is left over, as in "left: z-0".
func where(p Packing) string {
	byNode := map[string][]string{}
	for _, place := range p.Places {
		byNode[place.Node] = append(byNode[place.Node], place.Pod.Object.Name)
	}
	for _, left := range p.Left {
		byNode["left"] = append(byNode["left"], left.Object.Name)
	}
	var words []string
	for name, pods := range byNode {
		slices.Sort(pods)
		words = append(words, name+": "+strings.Join(pods, " "))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// pack packs pods that exist.
func pack(r *Room, pods []*Pod, groups []Group) Packing { return Pack(r, Demand{Pods: pods}, groups) }
