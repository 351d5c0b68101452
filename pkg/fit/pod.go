// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Pod is a pod as far as its place matters, read once. It never changes, and may be kept as long as the pod, its claims
// and their volumes stay the same.
type Pod struct {
	Object *corev1.Pod
	// Unclear says why no answer can be given for the pod as one that waits; empty where one can. As a pod that runs it
	// counts all the same.
	Unclear string

	needs    needs
	ports    []port
	required nodeaffinity.RequiredNodeAffinity
	volumes  []volume
	// together and apart are required affinity and anti-affinity.
	together, apart []term
	spread          []spread
	shape           string
}

// NewPod reads a pod. The lookups may be nil for a pod that runs.
func NewPod(pod *corev1.Pod, lookups *Lookups) *Pod {
	p := &Pod{Object: pod, needs: needsOf(pod), ports: portsOf(pod), required: nodeaffinity.GetRequiredNodeAffinity(pod)}
	var odd []error
	note := func(err error) {
		if err != nil {
			odd = append(odd, err)
		}
	}
	var err error
	p.together, p.apart, err = termsOf(pod)
	note(err)
	p.spread, err = spreadOf(pod)
	note(err)
	if lookups != nil {
		p.volumes, err = lookups.volumesOf(pod)
		note(err)
		note(exotic(pod))
	}
	if len(odd) > 0 {
		p.Unclear = odd[0].Error()
	}
	return p
}

// exotic is an error for a pod that the scheduler places by rules that are not known here.
func exotic(pod *corev1.Pod) error {
	switch {
	case len(pod.Spec.ResourceClaims) > 0:
		return fmt.Errorf("it claims devices")
	case pod.Spec.SchedulingGroup != nil:
		return fmt.Errorf("it is scheduled together with a group of pods")
	}
	for i := range pod.Spec.Tolerations {
		switch pod.Spec.Tolerations[i].Operator {
		case "", corev1.TolerationOpEqual, corev1.TolerationOpExists:
		default:
			return fmt.Errorf("it tolerates taints by comparing numbers")
		}
	}
	return nil
}

// Shape is the same for pods that are alike wherever they are asked for: what holds of one holds of the other. It costs
// more than the rest, and is made when it is first asked for; not for several goroutines at once.
func (p *Pod) Shape() string {
	if p.shape == "" {
		p.shape = p.describe()
	}
	return p.shape
}

func (p *Pod) describe() string {
	s := &p.Object.Spec
	var affinity corev1.Affinity
	if s.Affinity != nil {
		affinity = *s.Affinity
		affinity.NodeAffinity = affinity.NodeAffinity.DeepCopy()
		if affinity.NodeAffinity != nil {
			affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
		}
	}
	text, err := json.Marshal(struct {
		Unclear, Namespace string
		Priority           int32
		Labels, Selector   map[string]string
		Affinity           corev1.Affinity
		Tolerations        []corev1.Toleration
		Spread             []corev1.TopologySpreadConstraint
		Needs              needs
		Ports              []port
		Volumes            []string
	}{
		p.Unclear, p.Object.Namespace, p.Priority(), p.Object.Labels, s.NodeSelector, affinity, s.Tolerations,
		s.TopologySpreadConstraints, p.needs, p.ports, names(p.volumes),
	})
	if err != nil {
		return string(p.Object.UID) + "/" + p.Object.Namespace + "/" + p.Object.Name // like no other
	}
	sum := sha256.Sum256(text) // short, since it is compared often
	return string(sum[:])
}

// Priority is that of the pod among those that wait.
func (p *Pod) Priority() int32 {
	if p.Object.Spec.Priority == nil {
		return 0
	}
	return *p.Object.Spec.Priority
}

// Another is a pod like this one that has not been made yet, so it has no name.
func (p *Pod) Another() *Pod {
	another, object := *p, *p.Object
	object.Name, object.UID = "", ""
	another.Object = &object
	return &another
}

// Name is namespace/name.
func (p *Pod) Name() string { return p.Object.Namespace + "/" + p.Object.Name }

// port is one of the node's own that a pod takes.
type port struct {
	IP       string
	Protocol corev1.Protocol
	Number   int32
}

const anyAddress = "0.0.0.0"

func portsOf(pod *corev1.Pod) []port {
	var ports []port
	add := func(containers []corev1.Container, all bool) {
		for i := range containers {
			sidecar := containers[i].RestartPolicy != nil && *containers[i].RestartPolicy == corev1.ContainerRestartPolicyAlways
			for _, p := range containers[i].Ports {
				if p.HostPort > 0 && (all || sidecar) {
					ports = append(ports, port{cmp.Or(p.HostIP, anyAddress), cmp.Or(p.Protocol, corev1.ProtocolTCP), p.HostPort})
				}
			}
		}
	}
	add(pod.Spec.Containers, true)
	add(pod.Spec.InitContainers, false)
	return ports
}

// clashes says that two pods with these ports cannot be on one node.
func clashes(a, b []port) bool {
	for _, x := range a {
		if slices.ContainsFunc(b, func(y port) bool {
			return x.Number == y.Number && x.Protocol == y.Protocol && (x.IP == y.IP || x.IP == anyAddress || y.IP == anyAddress)
		}) {
			return true
		}
	}
	return false
}
