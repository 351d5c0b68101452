// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	requests "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"
)

// Pod contains what matters for a pod's place, read once. It never changes, and can be kept while
// the pod, its claims and their volumes stay the same.
type Pod struct {
	Object *corev1.Pod
	// Unclear is why it cannot be decided where the pod can run if it waits; empty if it can be. A
	// running pod counts in any case.
	Unclear string

	needs    needs
	ports    []port
	required nodeaffinity.RequiredNodeAffinity
	volumes  []volume
	claims   Claims
	// together and apart are required affinity and anti-affinity.
	together, apart []term
	spread          []spread
	// unread reports whether its labels and rules are unknown, because it exceeds a limit.
	unread bool
	// cost is the approximate work to compare the pod with a node.
	cost  int
	shape string
}

// NewPod reads a pod. The lookups may be nil for a running pod.
func NewPod(pod *corev1.Pod, lookups *Lookups) *Pod {
	p := Read(pod, lookups != nil)
	if lookups == nil {
		return p
	}
	return p.Located(lookups)
}

// Read reads a pod without its volumes and devices; see [Pod.Located].
func Read(pod *corev1.Pod, waits bool) *Pod {
	if _, reason := bounded(pod); reason != "" {
		pod = Slim(pod)
	}
	p := &Pod{Object: pod, needs: needsOf(pod), ports: portsOf(pod)}
	var errs [6]error
	p.together, p.apart, errs[1] = termsOf(pod)
	if !waits && pod.Spec.NodeName != "" { // only what matters to other pods
		p.together = nil
	} else {
		p.required = nodeaffinity.GetRequiredNodeAffinity(pod)
		p.spread, errs[2] = spreadOf(pod)
	}
	if reason := pod.Annotations[unread]; reason != "" {
		p.unread, errs[0] = true, errors.New("it "+reason)
	}
	if waits {
		errs[3], errs[4], errs[5] = exotic(pod), claimsUnread(pod), grouped(pod)
	}
	for _, err := range errs {
		if err != nil && p.Unclear == "" {
			p.Unclear = err.Error()
		}
	}
	p.cost = costOf(pod)
	return p
}

// Located returns the pod with the constraints of its volumes and claims as they are now.
func (p *Pod) Located(lookups *Lookups) *Pod {
	volumes, err := lookups.volumesOf(p.Object)
	located := *p
	located.claim(lookups.Devices)
	if len(volumes) == 0 && err == nil && located.claims == nil && located.Unclear == p.Unclear {
		return p
	}
	located.volumes, located.cost = volumes, p.cost+len(volumes)
	if err != nil && located.clearAlone() {
		located.Unclear = err.Error()
	}
	text := fmt.Sprintf("%s%q%s", p.Shape(), located.Unclear, strings.Join(volumeNames(volumes), "\x00"))
	if located.claims != nil {
		text += "\x00\x00" + located.claims.Shape()
	}
	sum := sha256.Sum256([]byte(text))
	located.shape = string(sum[:])
	return &located
}

// AwaitsVolume reports whether the scheduler has chosen a node for the pod, and waits until a volume
// has been created for it there. Nothing else shows that the room of this node is taken.
func (p *Pod) AwaitsVolume() bool {
	return slices.ContainsFunc(p.volumes, func(v volume) bool { return v.node != "" })
}

// costOf counts what is compared when a node is considered.
func costOf(pod *corev1.Pod) int {
	n := 1 + len(pod.Spec.NodeSelector) + len(pod.Spec.Tolerations)
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				n += 1 + len(e.Values)
			}
			n += 1 + len(term.MatchFields)
		}
	}
	return n
}

// ruleCount returns the number of terms and constraints of the pod about other pods.
func (p *Pod) ruleCount() int { return len(p.together) + len(p.apart) + len(p.spread) }

// exotic returns an error if the scheduler places the pod by rules that this package does not know.
func exotic(pod *corev1.Pod) error {
	if reason := pod.Annotations[unmovable]; reason != "" {
		return errors.New("it " + reason)
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

// inGroup is why a pod of a scheduling group is unclear, if nothing else makes it unclear.
const inGroup = "it is scheduled together with a group of pods"

func grouped(pod *corev1.Pod) error {
	if pod.Spec.SchedulingGroup != nil {
		return errors.New(inGroup)
	}
	return nil
}

// clearAlone reports whether it can be decided where the pod can run, apart from the other pods of its
// scheduling group.
func (p *Pod) clearAlone() bool { return p.Unclear == "" || p.Unclear == inGroup }

// Member returns the pod as one that can be decided about although it belongs to a scheduling group.
// It is for callers who know the group, and pack its pods together; see [Demand.Least].
func (p *Pod) Member() *Pod {
	if p.Unclear != inGroup {
		return p
	}
	member := *p
	member.Unclear = ""
	return &member
}

// Group returns the name of the pod's scheduling group, in its namespace; empty if it has none.
func (p *Pod) Group() string {
	if g := p.Object.Spec.SchedulingGroup; g != nil {
		return ptr.Deref(g.PodGroupName, "")
	}
	return ""
}

// Shape is the same for pods that are interchangeable. It is expensive, and is computed on first
// use; it must not be called concurrently.
func (p *Pod) Shape() string {
	if p.shape == "" {
		p.shape = p.describe()
	}
	return p.shape
}

func (p *Pod) describe() string {
	s := &p.Object.Spec
	unclear := p.Unclear
	if unclear == inGroup { // as of a member
		unclear = ""
	}
	text, _ := json.Marshal(struct { // all of it can be encoded
		Unclear, Namespace string
		Group              *corev1.PodSchedulingGroup `json:",omitempty"`
		Priority           int32
		Labels, Selector   map[string]string
		Affinity           *corev1.Affinity
		Tolerations        []corev1.Toleration
		Spread             []corev1.TopologySpreadConstraint
		Needs              needs
		Ports              []port
	}{
		unclear, p.Object.Namespace, s.SchedulingGroup, p.Priority(), p.Object.Labels, s.NodeSelector, required(s), s.Tolerations,
		hardConstraints(s.TopologySpreadConstraints), p.needs, p.ports,
	})
	sum := sha256.Sum256(text) // short, because it is compared often
	return string(sum[:])
}

// Priority is the pod's priority among waiting pods.
func (p *Pod) Priority() int32 {
	if p.Object.Spec.Priority == nil {
		return 0
	}
	return *p.Object.Spec.Priority
}

// Name returns namespace/name.
func (p *Pod) Name() string { return p.Object.Namespace + "/" + p.Object.Name }

// port is a port of the node that a pod uses.
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

// clashes reports whether two pods with these ports cannot run on the same node.
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

// TemplatePod returns a pod of a template as the API server completes it, before it has a node.
func TemplatePod(namespace, name string, template *corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations},
		Spec:       *template.Spec.DeepCopy(),
	}
	CompleteSpec(&pod.Spec)
	return pod
}

// CompleteSpec sets in the spec of a template what the API server sets in a pod of it, and not in
// the template: a resource that has a limit and no request requests its limit, and in the network of
// the node, each port is one of the node.
func CompleteSpec(s *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range containers {
			requestLimits(&containers[i].Resources, containers[i].Resources.Limits)
			if s.HostNetwork {
				useHostPorts(containers[i].Ports)
			}
		}
	}
	if s.Resources != nil {
		requestLimits(s.Resources, unrequested(s))
	}
}

func requestLimits(r *corev1.ResourceRequirements, limits corev1.ResourceList) {
	for name, q := range limits {
		if _, requested := r.Requests[name]; !requested {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = q
		}
	}
}

func useHostPorts(ports []corev1.ContainerPort) {
	for i := range ports {
		ports[i].HostPort = cmp.Or(ports[i].HostPort, ports[i].ContainerPort)
	}
}

// unrequested returns the limits of a pod as a whole, without those of resources that its containers
// request. Huge pages are always requested in full.
func unrequested(s *corev1.PodSpec) corev1.ResourceList {
	limits, requested := maps.Clone(s.Resources.Limits), requests.AggregateContainerRequests(&corev1.Pod{Spec: *s}, requests.PodResourcesOptions{})
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, is := requested[name]
		return is && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
	})
	return limits
}
