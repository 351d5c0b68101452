// SPDX-License-Identifier: Apache-2.0

package plan_test

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
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

func TestPlan(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Release: plan")
}

// story is a cluster of pools with a reserve, and of pods.
type story struct {
	View
	born int
}

// tell begins a story without anything.
func tell() *story { return &story{View: View{Now: Noon, Settings: UsualSettings}} }

// pool adds one of so many serving machines and reserve ones, the oldest first; replicas are what serves unless changed.
// Machines are called as their pool, with a number.
func (s *story) pool(name string, serving, spare, limit int, change ...func(*Pool)) *story {
	p := Pool{Key: "default/" + name, Basis: Basis{Generation: 7}, Replicas: serving, Max: limit, NodeOf: map[string]string{}, Sample: NodeIn("sample", name)}
	p.Reserve = reserve.View{Max: limit, Now: Noon, CurrentSet: "set", Wish: spare, Applied: reserve.Applied{Excess: spare, Max: limit}, SetReplicas: serving + spare}
	for i := range serving + spare {
		s.born++
		m := reserve.Machine{
			Name: fmt.Sprintf("%s-%d", name, i), Created: Noon.Add(time.Duration(s.born-1000) * time.Minute), Phase: mcm.MachineRunning, Set: "set",
			Reserve: i >= serving, HasProviderID: true,
		}
		n := NodeIn(m.Name, name)
		if m.Reserve {
			Held(n)
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

func first(m *reserve.Machine)   { m.First = true }
func booting(m *reserve.Machine) { m.Phase = mcm.MachinePending }
func failing(m *reserve.Machine) { m.Phase, m.Failing = mcm.MachineCrashLoopBackOff, true }
func unborn(m *reserve.Machine)  { m.Phase, m.HasProviderID = mcm.MachinePending, false }
func unknown(m *reserve.Machine) { m.Phase = mcm.MachineUnknown }
func leaves(m *reserve.Machine)  { m.Deleted, m.Phase = true, mcm.MachineTerminating }

// neverMade is a machine that has no VM, because it could not be created.
func neverMade(m *reserve.Machine) {
	failing(m)
	m.HasProviderID = false
}

// applied is the excess that is recorded.
func applied(n int) func(*Pool) { return func(p *Pool) { p.Reserve.Applied.Excess = n } }

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
				s.runs(m.Name, Pod("filler-"+m.Name, 4000))
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

// awaits adds a pod for which the scheduler has chosen a node, until its volume has been created there.
func (s *story) awaits(node string, p *corev1.Pod) *story {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"volume.kubernetes.io/selected-node": node}}}
	claim.Spec.StorageClassName = ptr.To("late")
	class := &storagev1.StorageClass{Provisioner: "csi.example", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: shared}}
	s.Waiting = append(s.Waiting, fit.NewPod(p, &fit.Lookups{
		Claim: func(string, string) *corev1.PersistentVolumeClaim { return claim },
		Class: func(string) *storagev1.StorageClass { return class },
	}))
	return s
}

func tolerant(p *corev1.Pod) {
	p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: v1alpha1.ReserveTaintKey, Operator: corev1.TolerationOpExists})
}

// claimsDevice has a pod need what the rules know nothing about.
func claimsDevice(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{}} }

// outcomes are what becomes of how many pods, as in "HasRoom:1 Released:2". Each is one of those that are counted.
func outcomes(p Plan) string {
	counts := map[string]int{}
	for _, o := range p.Pods {
		Expect(Outcomes).To(ContainElement(o))
		counts[string(o)]++
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s:%d", name, counts[name]))
	}
	return strings.Join(words, " ")
}

func expectPlan(raises, outcome string, s *story) {
	p := New(s.View)
	Expect(Raises(p)).To(Equal(raises))
	Expect(outcomes(p)).To(Equal(outcome))
}
