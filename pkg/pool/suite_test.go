// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

func TestPool(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Pool")
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a MachineDeployment and all that there is beside it.
type world struct {
	deployment *machine.MachineDeployment
	pool.Objects
}

// newWorld has a MachineDeployment "pool" whose template is of the MachineClass "new", and its MachineSets "new" and "old".
func newWorld() *world {
	d := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "pool", UID: "pool", Annotations: map[string]string{}}}
	d.Spec.Template.Spec.Class.Name = "new"
	w := &world{deployment: d}
	for _, name := range []string{"new", "old"} {
		set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, UID: types.UID(name), OwnerReferences: ownedBy("MachineDeployment", "pool")}}
		set.Spec.Template.Spec.Class.Name = name
		w.Sets = append(w.Sets, set)
	}
	return w
}

func ownedBy(kind, uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: kind, Name: uid, UID: types.UID(uid), Controller: ptr.To(true)}}
}

// machine of a MachineSet: it runs, and its Node has its name.
func (w *world) machine(set, name string, change ...func(*mcm.Machine)) *mcm.Machine {
	m := fixture.Machine(name, func(m *mcm.Machine) {
		m.UID, m.OwnerReferences, m.Labels = types.UID(name), ownedBy("MachineSet", set), map[string]string{mcm.NodeLabelKey: name}
		m.Annotations, m.Spec.ProviderID, m.Status.CurrentStatus.Phase = map[string]string{}, "virtual:///"+name, mcm.MachineRunning
	})
	for _, c := range change {
		c(m)
	}
	w.Machines = append(w.Machines, m)
	return m
}

func (w *world) node(name string, change ...func(*corev1.Node)) {
	w.Nodes = append(w.Nodes, fixture.Node(name, change...))
}

func (w *world) pod(node string, change ...func(*corev1.Pod)) {
	w.Pods = append(w.Pods, fixture.Pod(fmt.Sprint("pod-", len(w.Pods)), append([]func(*corev1.Pod){func(p *corev1.Pod) {
		p.Spec.NodeName, p.OwnerReferences = node, ownedBy("ReplicaSet", "app")
	}}, change...)...))
}

func (w *world) read() pool.Snapshot { return pool.Read(w.deployment, pool.NewList(w.Objects), noon) }

// one is the machine of that name.
func (w *world) one(name string) pool.Machine {
	machines := w.read().Machines
	return machines[slices.IndexFunc(machines, func(m pool.Machine) bool { return m.Object.Name == name })]
}

func marked(m *mcm.Machine) { m.Annotations[machine.ReserveAnnotation] = "marked" }

func tolerate(effect corev1.TaintEffect) corev1.Toleration {
	return corev1.Toleration{Key: machine.ReserveTaintKey, Operator: corev1.TolerationOpExists, Effect: effect}
}

func tolerating(effect corev1.TaintEffect) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, tolerate(effect))
	}
}

// drawWorld draws objects that share few names, so that they get into each other's way.
func drawWorld(t *rapid.T) *world {
	w := newWorld()
	names, ids := []string{"", "a", "b", "c"}, []string{"", "virtual:///a", "virtual:///b", "aws:///zone/c", "aws:///region/c", "aws:///zone/a"}
	pick := func(from []string, what string) string { return rapid.SampledFrom(from).Draw(t, what) }
	w.deployment.Spec.Replicas = rapid.Int32Range(-1, 9).Draw(t, "replicas")
	for _, one := range []struct {
		key    string
		values []string
	}{
		{machine.AppliedReplicasAnnotation, []string{"", "0", "3", "many"}},
		{machine.AppliedExcessAnnotation, []string{"", "0", "2", "2,max=4", "some"}},
		{machine.BoundsAnnotation, []string{"", "1:5", "1:5:2", "1"}},
		{machine.ShareAnnotation, []string{"", "2", "x"}},
		{machineutils.TriggerDeletionByMCM, []string{"", "m0", "m1,m2", "m1~soon"}},
	} {
		if text := pick(one.values, one.key); text != "" {
			w.deployment.Annotations[one.key] = text
		}
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "machines") {
		m := w.machine(pick([]string{"new", "old", "foreign"}, "set"), fmt.Sprint("m", i), func(m *mcm.Machine) {
			m.Labels[mcm.NodeLabelKey], m.Spec.ProviderID = pick(names, "node"), pick(ids, "machine's id")
			m.Status.CurrentStatus.Phase = rapid.SampledFrom([]mcm.MachinePhase{"", mcm.MachinePending, mcm.MachineRunning, mcm.MachineUnknown, mcm.MachineFailed, mcm.MachineTerminating}).Draw(t, "phase")
		})
		if rapid.Bool().Draw(t, "marked") {
			marked(m)
		}
		if rapid.IntRange(0, 3).Draw(t, "named") == 0 {
			m.Annotations[machineutils.MachinePriority], m.Annotations[machineutils.MarkedForDeletionTime] = "1", noon.Format(time.RFC3339)
		}
		if rapid.Bool().Draw(t, "deleted") {
			m.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		}
	}
	for _, name := range names[1:] {
		if rapid.Bool().Draw(t, "registered") {
			w.node(name, func(n *corev1.Node) {
				n.Spec.ProviderID, n.Spec.Unschedulable = pick(ids, "node's id"), rapid.Bool().Draw(t, "cordoned")
				if rapid.Bool().Draw(t, "unready") {
					n.Status.Conditions = nil
				}
			})
		}
	}
	for range rapid.IntRange(0, 5).Draw(t, "pods") {
		w.pod(pick(names, "pod's node"), func(p *corev1.Pod) {
			p.OwnerReferences = ownedBy(pick([]string{"ReplicaSet", "DaemonSet"}, "owner"), "app")
			p.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed}).Draw(t, "pod's phase")
		})
	}
	if rapid.Bool().Draw(t, "class") {
		w.Classes = append(w.Classes, fixture.MachineClass("new", func(c *mcm.MachineClass) {
			c.NodeTemplate = &mcm.NodeTemplate{Capacity: corev1.ResourceList{}}
		}))
	}
	return w
}
