// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

var suite *testing.T

func TestRelease(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Release")
}

// noon is when plans are made.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var settings = Settings{Schedulers: []string{"default-scheduler"}, Cutoff: DefaultCutoff, Patience: DefaultPatience}

const zone = corev1.LabelTopologyZone

// story is a cluster of pools with a reserve, and of pods.
type story struct {
	View
	born int
}

// tell begins a story without anything.
func tell() *story { return &story{View: View{Now: noon, Settings: settings}} }

// node has four CPUs, and is in the zone of its pool.
func node(name, place string) *corev1.Node {
	return fixture.Node(name, func(n *corev1.Node) { n.Labels[zone] = place })
}

func held(n *corev1.Node) *corev1.Node {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: v1alpha1.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule})
	return n
}

// pool adds one of so many serving machines and reserve ones, the oldest first; replicas are what serves unless changed.
// Machines are called as their pool, with a number.
func (s *story) pool(name string, serving, spare, limit int, change ...func(*Pool)) *story {
	p := Pool{Key: "default/" + name, Basis: Basis{Generation: 7}, Replicas: serving, Max: limit, NodeOf: map[string]string{}, Sample: node("sample", name)}
	p.Reserve = reserve.View{Max: limit, Now: noon, CurrentSet: "set", Wish: spare, Applied: reserve.Applied{Excess: spare, Max: limit}, SetReplicas: serving + spare}
	for i := range serving + spare {
		s.born++
		m := reserve.Machine{
			Name: fmt.Sprintf("%s-%d", name, i), Created: noon.Add(time.Duration(s.born-1000) * time.Minute), Phase: mcm.MachineRunning, Set: "set",
			Reserve: i >= serving, HasProviderID: true, Priority: reserve.PriorityServing, SeenPriority: reserve.PriorityServing, Returned: true,
		}
		n := node(m.Name, name)
		if m.Reserve {
			m.Priority, m.SeenPriority = reserve.PriorityReserve, reserve.PriorityReserve
			held(n)
		}
		p.Reserve.Machines = append(p.Reserve.Machines, m)
		p.NodeOf[m.Name] = m.Name
		s.Nodes = append(s.Nodes, Node{Object: n})
	}
	for _, f := range change {
		f(&p)
	}
	s.Pools = append(s.Pools, p)
	return s
}

func replicas(n int) func(*Pool) { return func(p *Pool) { p.Replicas = n } }

// machine changes one.
func machine(name string, change func(*reserve.Machine)) func(*Pool) {
	return func(p *Pool) {
		i := slices.IndexFunc(p.Reserve.Machines, func(m reserve.Machine) bool { return m.Name == name })
		change(&p.Reserve.Machines[i])
	}
}

func victim(m *reserve.Machine) {
	m.Priority, m.SeenPriority = reserve.PriorityVictim, reserve.PriorityVictim
}
func booting(m *reserve.Machine) { m.Phase = mcm.MachinePending }
func failing(m *reserve.Machine) { m.Phase, m.Failing = mcm.MachineCrashLoopBackOff, true }
func unknown(m *reserve.Machine) { m.Phase = mcm.MachineUnknown }
func leaves(m *reserve.Machine)  { m.Deleted, m.Phase = true, mcm.MachineTerminating }

// unborn machines have no Node yet.
func (s *story) unborn(names ...string) *story {
	for i := range s.Pools {
		maps.DeleteFunc(s.Pools[i].NodeOf, func(m, _ string) bool { return slices.Contains(names, m) })
	}
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n Node) bool { return slices.Contains(names, n.Object.Name) })
	return s
}

// runs puts a pod on a node.
func (s *story) runs(on string, pods ...*corev1.Pod) *story {
	i := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.Object.Name == on })
	for _, p := range pods {
		p.Spec.NodeName = on
		s.Nodes[i].Pods = append(s.Nodes[i].Pods, fit.NewPod(p, nil))
	}
	return s
}

// full has every serving machine run a pod that leaves nothing.
func (s *story) full() *story {
	for _, p := range s.Pools {
		for _, m := range p.Reserve.Machines {
			if !m.Reserve && p.NodeOf[m.Name] != "" {
				s.runs(m.Name, pod("filler-"+m.Name, 4000))
			}
		}
	}
	return s
}

var nothing = &fit.Lookups{}

// waits adds pods that wait.
func (s *story) waits(pods ...*corev1.Pod) *story {
	for _, p := range pods {
		s.Waiting = append(s.Waiting, fit.NewPod(p, nothing))
	}
	return s
}

// pod requests so many thousandths of a CPU, and the scheduler has found no place for it.
func pod(name string, milli int64, change ...func(*corev1.Pod)) *corev1.Pod {
	app, _, _ := strings.Cut(name, "-")
	return fixture.Pod(name, append([]func(*corev1.Pod){func(p *corev1.Pod) {
		p.UID, p.Labels, p.Spec.SchedulerName = types.UID(name), map[string]string{"app": app}, "default-scheduler"
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI)}
		p.Status.Phase = corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	}}, change...)...)
}

func pods(n int, name string, milli int64, change ...func(*corev1.Pod)) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		all = append(all, pod(fmt.Sprintf("%s-%d", name, i), milli, change...))
	}
	return all
}

func untried(p *corev1.Pod) { p.Status.Conditions = nil }

func inZone(place string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{zone: place} }
}

func apart(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}},
	}}}
}

func tolerant(p *corev1.Pod) {
	p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: v1alpha1.ReserveTaintKey, Operator: corev1.TolerationOpExists})
}

// raises are what a plan writes, as in "a+2(a-1 a-2) b+1(b-1)".
func raises(p Plan) string {
	var words []string
	for _, r := range p.Raises {
		words = append(words, fmt.Sprintf("%s+%d(%s)", strings.TrimPrefix(r.Pool.Key, "default/"), r.By, strings.Join(r.Machines, " ")))
	}
	return strings.Join(words, " ")
}

// outcomes are what becomes of how many pods, as in "HasRoom:1 Released:2".
func outcomes(p Plan) string {
	counts := map[string]int{}
	for _, o := range p.Pods {
		counts[string(o)]++
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s:%d", name, counts[name]))
	}
	return strings.Join(words, " ")
}
