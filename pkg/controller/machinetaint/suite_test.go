// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

func TestPlan(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Machine taint plan")
}

// noon is the time of all fleets. Their machines were created an hour before, at eleven.
var (
	noon   = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	eleven = noon.Add(-time.Hour)
)

const heldSinceEleven = "Held since 2026-11-22T11:00:00Z; node %s carries the reserve taint"

// plain keeps workload off with one taint.
var plain = machinetaint.Settings{Effects: []corev1.TaintEffect{corev1.TaintEffectNoSchedule}, SurplusPatience: time.Hour}

// evicting also has a taint that evicts pods.
var evicting = machinetaint.Settings{Effects: []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}, SurplusPatience: time.Hour}

type machineChange = func(*machinetaint.Machine)

// serving is a ready machine that runs pods.
func serving(name string, change ...machineChange) machinetaint.Machine {
	o := fixture.Machine(name)
	o.CreationTimestamp, o.Spec.ProviderID, o.Status.CurrentStatus.Phase = metav1.NewTime(eleven), "virtual:///"+name, mcm.MachineRunning
	o.Annotations = map[string]string{}
	m := machinetaint.Machine{Machine: pool.Machine{Object: o, Set: "set", Node: fixture.Node(name), Pods: 3, NonTolerating: 3}}
	for _, c := range change {
		c(&m)
	}
	return m
}

// held is a ready machine that was created in reserve, and is as settings want it.
func held(name string, change ...machineChange) machinetaint.Machine {
	return heldBy(plain, name, change...)
}

func heldBy(s machinetaint.Settings, name string, change ...machineChange) machinetaint.Machine {
	return serving(name, append([]machineChange{idle, func(m *machinetaint.Machine) {
		mark := s.NewMark(eleven)
		m.Object = pool.Mark(m.Object, mark)
		m.Object.Annotations[api.ReserveStateAnnotation] = fmt.Sprintf(heldSinceEleven, name)
		m.Node.Spec.Taints, m.Node.Annotations = mark.Taints, maps.Clone(mark.Annotations)
	}}, change...)...)
}

func unchanged(*machinetaint.Machine)         {}
func idle(m *machinetaint.Machine)            { m.Pods, m.NonTolerating = 0, 0 }
func occupied(m *machinetaint.Machine)        { m.Pods, m.NonTolerating = 1, 1 }
func withTolerantPod(m *machinetaint.Machine) { m.Pods, m.NonTolerating = 1, 0 }
func uncreated(m *machinetaint.Machine)       { m.Object.Spec.ProviderID = "" }
func withoutNode(m *machinetaint.Machine)     { m.Node = nil }
func leaving(m *machinetaint.Machine)         { m.Object.DeletionTimestamp = &metav1.Time{Time: noon} }
func nodeLeaving(m *machinetaint.Machine)     { m.Node.DeletionTimestamp = &metav1.Time{Time: noon} }

// first has a client want the machine deleted before others.
func first(m *machinetaint.Machine) { annotated(machineutils.MachinePriority, "1")(m) }

// named has a client name the machine for deletion.
func named(m *machinetaint.Machine) { m.Named = true }

func templateOf(m *machinetaint.Machine) *mcm.NodeTemplateSpec {
	return &m.Object.Spec.NodeTemplateSpec
}

func in(phase mcm.MachinePhase) machineChange {
	return func(m *machinetaint.Machine) { m.Object.Status.CurrentStatus.Phase = phase }
}

// annotated sets an annotation of the Machine; an empty value removes it.
func annotated(key, value string) machineChange {
	return func(m *machinetaint.Machine) {
		if m.Object.Annotations[key] = value; value == "" {
			delete(m.Object.Annotations, key)
		}
	}
}

// fleet is a MachineDeployment with these machines and an explicit excess, which is applied.
func fleet(replicas, excess int32, machines ...machinetaint.Machine) machinetaint.View {
	v := owned(excess, "", "")
	v.Now, v.Settings, v.Machines, v.CurrentSet = noon, plain, machines, "set"
	v.SetReplicas = len(machines)
	v.Deployment.UID, v.Deployment.Spec.Replicas = "uid", replicas
	if excess > 0 {
		v.Deployment.Annotations[api.AppliedExcessAnnotation] = fmt.Sprint(excess)
		v.Deployment.Annotations[api.WantedExcessAnnotation] = fmt.Sprint(excess)
		v.Deployment.Spec.ReserveWitness = true
	}
	slices.SortFunc(v.Machines, func(a, b machinetaint.Machine) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	return v
}

// atRest is a fleet of three that serve and two in reserve, as desired.
func atRest(change ...viewChange) machinetaint.View {
	return changed(fleet(3, 2, held("r1"), held("r2"), serving("s1"), serving("s2"), serving("s3")), change...)
}

type viewChange = func(*machinetaint.View)

func changed(v machinetaint.View, change ...viewChange) machinetaint.View {
	for _, c := range change {
		c(&v)
	}
	return v
}

// note sets an annotation of the MachineDeployment; an empty value removes it.
func note(key, value string) viewChange {
	return func(v *machinetaint.View) {
		if v.Deployment.Annotations[key] = value; value == "" {
			delete(v.Deployment.Annotations, key)
		}
	}
}

func replicas(n int32) viewChange {
	return func(v *machinetaint.View) { v.Deployment.Spec.Replicas = n }
}
func witness(v *machinetaint.View)     { v.Deployment.Spec.ReserveWitness = true }
func unreachable(v *machinetaint.View) { v.Unreachable = "the API server does not respond" }
func draining(v *machinetaint.View)    { v.Settings.Drain = true }
func inclusive(v *machinetaint.View)   { v.Accounting = pool.Inclusive }

// excess sets spec.excessReplicas, as its record shows.
func excess(n int32) viewChange {
	return func(v *machinetaint.View) {
		v.Deployment.Spec.ExcessReplicas, v.Deployment.Spec.ReserveWitness = &n, n > 0
		note(api.WantedExcessAnnotation, fmt.Sprint(n))(v)
	}
}

// machine changes one of the machines.
func machine(name string, change ...machineChange) viewChange {
	return func(v *machinetaint.View) {
		i := slices.IndexFunc(v.Machines, func(m machinetaint.Machine) bool { return m.Object.Name == name })
		for _, c := range change {
			c(&v.Machines[i])
		}
	}
}

// short is a key without its prefix.
func short(key string) string {
	for _, prefix := range []string{"status-taint.cluster-autoscaler.kubernetes.io/excess-", "cluster-autoscaler.kubernetes.io/", api.AnnotationPrefix} {
		key = strings.TrimPrefix(key, prefix)
	}
	return key
}

// about are the writes of one machine or Node.
func about(name string, writes []string) []string {
	return slices.DeleteFunc(writes, func(text string) bool { return !strings.HasPrefix(text, name+" ") })
}

// entries are annotations to write, sorted: "key=value", and "key=" for one to remove.
func entries(annotations map[string]string) []string {
	all := []string{}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		all = append(all, short(key)+"="+annotations[key])
	}
	return all
}

// machineWrites are the changes of Machines in order, without those of their state.
func machineWrites(p machinetaint.Plan) []string {
	all := []string{}
	for _, c := range p.Machines {
		text := c.Name + [...]string{machinetaint.Keep: "", machinetaint.Free: " released", machinetaint.Hold: " held"}[c.Mark]
		if c.Why != "" {
			text += fmt.Sprintf(" (%s)", c.Why)
		}
		if c.Unranked {
			text += " without priority"
		}
		if c.Owner != nil {
			text += fmt.Sprintf(" owner %q", *c.Owner)
		}
		if text != c.Name {
			all = append(all, text)
		}
	}
	return all
}

// nodeWrites are the changes of Nodes in order, with their taints and annotations.
func nodeWrites(p machinetaint.Plan) []string {
	all := []string{}
	for _, c := range p.Nodes {
		all = append(all, c.Machine.Node.Name+" "+nodeWrite(c))
	}
	return all
}

func nodeWrite(c machinetaint.NodeChange) string {
	text := map[bool]string{true: "held", false: "released"}[c.Hold] + ":"
	for _, t := range c.Taints {
		text += " " + short(t.ToString())
	}
	return strings.Join(append([]string{text + ";"}, entries(c.Annotations)...), " ")
}

// stateWrites are the new states of Machines.
func stateWrites(p machinetaint.Plan) map[string]string {
	all := map[string]string{}
	for _, c := range p.Machines {
		if c.State != nil {
			all[c.Name] = *c.State
		}
	}
	return all
}

// expectAtRest expects that nothing is written.
func expectAtRest(p machinetaint.Plan) {
	GinkgoHelper()
	Expect(isAtRest(p)).To(BeTrue(), "%+v", p)
}

// isAtRest reports whether a plan writes nothing but status.
func isAtRest(p machinetaint.Plan) bool {
	return len(p.Machines)+len(p.Nodes) == 0 && equality.Semantic.DeepEqual(p.Deployment, machinetaint.DeploymentChange{})
}
