// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"fmt"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

func TestOverview(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Overview")
}

// now is when all worlds are looked at.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is objects in the making.
type world struct{ Objects }

func newWorld() *world { return &world{Objects{At: now}} }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// pool adds a MachineDeployment with a label for its pool and a MachineSet.
func (w *world) pool(name string, replicas int32, change ...func(*v1alpha1.MachineDeployment)) *v1alpha1.MachineDeployment {
	plain := fixture.MachineDeployment(name, replicas)
	d := &v1alpha1.MachineDeployment{ObjectMeta: plain.ObjectMeta}
	d.Spec.StockMachineDeploymentSpec = plain.Spec
	d.UID, d.CreationTimestamp = types.UID(name), ago(24*time.Hour)
	d.Labels = map[string]string{DefaultPoolLabel: "pool"}
	d.Annotations = map[string]string{}
	for _, c := range change {
		c(d)
	}
	w.Deployments = append(w.Deployments, d)
	w.set(d, name+"-set")
	return d
}

func (w *world) set(d *v1alpha1.MachineDeployment, name string) {
	s := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: d.Namespace, UID: types.UID(name), OwnerReferences: owned("MachineDeployment", d.UID)}}
	s.Spec.Replicas, s.Spec.Template = 1, d.Spec.Template
	w.Sets = append(w.Sets, s)
}

func owned(kind string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: kind, Name: string(uid), UID: uid, Controller: ptr.To(true)}}
}

// machine adds one that runs and has a Node, an hour old.
func (w *world) machine(set, name string, change ...func(*mcm.Machine)) *mcm.Machine {
	m := fixture.Machine(name, func(m *mcm.Machine) {
		m.OwnerReferences = owned("MachineSet", types.UID(set+"-set"))
		m.CreationTimestamp = ago(time.Hour)
		m.Labels = map[string]string{mcm.NodeLabelKey: name}
		m.Annotations = map[string]string{}
		m.Status.CurrentStatus.Phase = mcm.MachineRunning
	})
	for _, c := range change {
		c(m)
	}
	w.Machines = append(w.Machines, m)
	w.Nodes = append(w.Nodes, fixture.Node(name, func(n *corev1.Node) {
		n.Labels[corev1.LabelTopologyZone] = "zone-of-" + set
		n.CreationTimestamp = m.CreationTimestamp
	}))
	return m
}

// pod adds one that runs on a Node.
func (w *world) pod(name, node string, change ...func(*corev1.Pod)) {
	p := fixture.Pod(name, change...)
	p.Spec.NodeName = node
	w.Pods = append(w.Pods, p)
}

// waiter adds a pod that found no room.
func (w *world) waiter(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := fixture.Pod(name, change...)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	w.Pods = append(w.Pods, p)
	return p
}

func phase(p mcm.MachinePhase) func(*mcm.Machine) {
	return func(m *mcm.Machine) { m.Status.CurrentStatus.Phase = p }
}

func created(d time.Duration) func(*mcm.Machine) {
	return func(m *mcm.Machine) { m.CreationTimestamp = ago(d) }
}

// held marks a machine since so long.
func held(d time.Duration) func(*mcm.Machine) {
	return func(m *mcm.Machine) {
		m.Annotations[v1alpha1.ReserveAnnotation] = v1alpha1.Reserve{Since: now.Add(-d)}.String()
	}
}

func noted(key, value string) func(*mcm.Machine) {
	return func(m *mcm.Machine) { m.Annotations[key] = value }
}

// refused marks the machine as one that cannot be created.
func refused(code, text string) func(*mcm.Machine) {
	return func(m *mcm.Machine) {
		m.Status.CurrentStatus.Phase = mcm.MachineCrashLoopBackOff
		m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: code, Description: text}
	}
}

func annotated(key, value string) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) { d.Annotations[key] = value }
}

func bounds(text string) func(*v1alpha1.MachineDeployment) {
	return annotated(v1alpha1.BoundsAnnotation, text)
}

func excess(n int32) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) { d.Spec.ExcessReplicas = &n }
}

func ready(status, reason, message string, since time.Duration) func(*v1alpha1.MachineDeployment) {
	return condition(v1alpha1.ReserveReady, status, reason, message, since)
}

func condition(kind mcm.MachineDeploymentConditionType, status, reason, message string, since time.Duration) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) {
		d.Status.Conditions = append(d.Status.Conditions, mcm.MachineDeploymentCondition{
			Type: kind, Status: mcm.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: ago(since),
		})
	}
}

// said are the troubles in one line each.
func said(v Overview) []string {
	lines := []string{}
	for _, t := range v.Troubles {
		lines = append(lines, fmt.Sprintf("%s: %s -> %s", t.Object, t.What, t.Do))
	}
	return lines
}
