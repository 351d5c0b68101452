// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/fit"
	machinepool "github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

var suite *testing.T

func TestBalance(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Balance")
}

// Noon is when plans are made, Born when machines were.
var (
	Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	Born = Noon.Add(-time.Hour)
)

type Change func(*Member)

func Annotate(key, value string) Change {
	return func(m *Member) {
		if m.Object.Annotations == nil {
			m.Object.Annotations = map[string]string{}
		}
		m.Object.Annotations[key] = value
	}
}

func Mode(m v1alpha1.BalanceMode) Change { return Annotate(v1alpha1.BalanceAnnotation, string(m)) }

func ScaleUp(m *Member)    { Mode(v1alpha1.BalanceScaleUp)(m) }
func Continuous(m *Member) { Mode(v1alpha1.BalanceContinuous)(m) }

func Applied(n int) Change        { return Annotate(v1alpha1.AppliedReplicasAnnotation, strconv.Itoa(n)) }
func share(n int) Change          { return Annotate(v1alpha1.ShareAnnotation, strconv.Itoa(n)) }
func bounds(text string) Change   { return Annotate(v1alpha1.BoundsAnnotation, text) }
func move(m v1alpha1.Move) Change { return Annotate(v1alpha1.MoveAnnotation, m.String()) }
func ExcessField(n int32) Change  { return func(m *Member) { m.Object.Spec.ExcessReplicas = &n } }
func Labelled(pool string) Change {
	return func(m *Member) { m.Object.Labels = map[string]string{PoolLabel: pool} }
}
func nodeLabel(k, v string) Change {
	return func(m *Member) { m.Template.Labels[k], m.Fresh.Labels[k] = v, v }
}
func Tainted(m *Member) {
	m.Template.Taints = []corev1.Taint{{Key: "dedicated", Value: "batch", Effect: corev1.TaintEffectNoSchedule}}
	m.Object.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints = m.Template.Taints
}
func paused(m *Member)      { m.Object.Spec.Paused = true }
func noSet(m *Member)       { m.NoSet = true }
func rollout(m *Member)     { m.Rollout.Spread = true }
func frozenLabel(m *Member) { m.Object.Labels = map[string]string{"freeze": "True"} }
func frozen(m *Member) {
	m.Object.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: mcm.MachineDeploymentFrozen, Status: mcm.ConditionTrue}}
}
func unknownTemplate(m *Member) { m.Template, m.Fresh = nil, nil }
func machines(all ...Machine) Change {
	return func(m *Member) { m.Machines = append(m.Machines, all...) }
}

const PoolLabel = "worker.gardener.cloud/pool"

// Excess is what the node template says.
func Excess(text string) Change {
	return func(m *Member) {
		m.Object.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{v1alpha1.PoolExcessAnnotation: text}
	}
}

// NewMember has so many replicas, each with a machine that is ready, in a zone of its own.
func NewMember(name string, replicas int, changes ...Change) Member {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace, ResourceVersion: "1" + strconv.Itoa(len(name))}}
	d.Spec.Replicas = int32(replicas)
	room := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	labels := func() map[string]string {
		return map[string]string{corev1.LabelTopologyZone: name, corev1.LabelHostname: "fresh." + name}
	}
	m := Member{
		Object:   d,
		Template: &similar.Template{Name: name, Capacity: room, Allocatable: room, Free: room, Labels: labels()},
		Fresh:    fixture.Node("fresh."+name, func(n *corev1.Node) { n.Labels = labels() }),
	}
	for i := range replicas {
		m.Machines = append(m.Machines, NewMachine(fmt.Sprintf("%s-%d", name, i)))
	}
	for _, c := range changes {
		c(&m)
	}
	return m
}

// NewMachine runs, and has for an hour.
func NewMachine(name string, changes ...func(*Machine)) Machine {
	o := fixture.Machine(name)
	o.CreationTimestamp = metav1.NewTime(Born)
	o.Labels = map[string]string{mcm.NodeLabelKey: name}
	o.Annotations = map[string]string{}
	o.Status.CurrentStatus = mcm.CurrentStatus{Phase: mcm.MachineRunning, LastUpdateTime: metav1.NewTime(Born)}
	m := Machine{Machine: machinepool.Machine{Object: o}}
	for _, c := range changes {
		c(&m)
	}
	return m
}

func inReserve(m *Machine) {
	m.Object.Annotations[v1alpha1.ReserveAnnotation] = v1alpha1.Reserve{Since: Born}.String()
}

// exhausted could not be made: its zone has no capacity.
func exhausted(m *Machine) {
	m.Object.Status.CurrentStatus.Phase = mcm.MachineCrashLoopBackOff
	m.Object.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: "ResourceExhausted"}
}

func bornAt(t time.Time) func(*Machine) {
	return func(m *Machine) { m.Object.CreationTimestamp = metav1.NewTime(t) }
}

func phase(p mcm.MachinePhase) func(*Machine) {
	return func(m *Machine) { m.Object.Status.CurrentStatus.Phase = p }
}

func leaving(m *Machine) {
	now := metav1.NewTime(Noon)
	m.Object.DeletionTimestamp = &now
}

// ready are so many machines in reserve.
func ready(n int) Change {
	return func(m *Member) {
		for i := range n {
			m.Machines = append(m.Machines, NewMachine(fmt.Sprintf("%s-r%d", m.Object.Name, i), inReserve))
		}
	}
}

// stuck are so many machines that serve and cannot be made, in the place of the last ones.
func stuck(n int) Change {
	return func(m *Member) {
		for i := range n {
			exhausted(&m.Machines[len(m.Machines)-1-i])
		}
	}
}

func NewSettings() Settings {
	return Settings{Enabled: true, Mode: v1alpha1.BalanceOff, Similar: similar.Defaults(), BootPatience: 10 * time.Minute, PoolLabels: []string{PoolLabel}}
}

func view(members ...Member) View {
	return View{Now: Noon, Settings: NewSettings(), Members: members, Garden: Garden{Known: true}, Memory: Memory{}}
}

// pod of a Deployment, one CPU large, that runs on a node unless that is empty.
func pod(name, node string, changes ...func(*corev1.Pod)) *fit.Pod {
	return fit.NewPod(StoredPod(name, node, changes...), &fit.Lookups{})
}

// StoredPod is such a pod as the controller's cache has it.
func StoredPod(name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	controller := true
	p := fixture.Pod(name, func(p *corev1.Pod) {
		p.Spec.NodeName = node
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "app", Controller: &controller}}
		p.CreationTimestamp = metav1.NewTime(Born)
	})
	for _, c := range changes {
		c(p)
	}
	return target.StripPod(p)
}

// inZone binds a pod to a zone.
func InZone(zone string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone} }
}

// hold puts a pod on a machine.
func hold(m *Machine, pods ...*fit.Pod) { m.Workload = append(m.Workload, pods...) }

// of is a member's outcome.
func of(p Plan, name string) Outcome {
	for _, o := range p.Outcomes {
		if o.Name == name {
			return o
		}
	}
	Fail("no outcome for " + name)
	return Outcome{}
}

// writes are what the plan writes, in short: "a: r=4 applied=4 share=1; b: -move".
func writes(p Plan) string {
	var all []string
	for _, o := range p.Outcomes {
		w := o.Write
		var words []string
		if w.Replicas != nil {
			words = append(words, fmt.Sprint("r=", *w.Replicas))
		}
		if w.Excess != nil {
			words = append(words, fmt.Sprint("excess=", *w.Excess))
		}
		for _, key := range []string{v1alpha1.AppliedReplicasAnnotation, v1alpha1.ShareAnnotation, v1alpha1.BoundsAnnotation, v1alpha1.GivenBoundsAnnotation, v1alpha1.MoveAnnotation, v1alpha1.OwnExcessAnnotation} {
			short := strings.TrimPrefix(key, v1alpha1.AnnotationPrefix)
			if value, ok := w.Annotations[key]; ok && value == "" {
				words = append(words, "-"+short)
			} else if ok {
				words = append(words, short+"="+value)
			}
		}
		if w.Gone != "" {
			words = append(words, "gone="+w.Gone)
		}
		if len(words) > 0 {
			all = append(all, o.Name+": "+strings.Join(words, " "))
		}
	}
	return strings.Join(all, "; ")
}

// shares are what each member's share is after the plan, as in 2/1/1; - for none.
func shares(v View, p Plan) string { return after(v, p, v1alpha1.ShareAnnotation) }

func after(v View, p Plan, key string) string {
	var words []string
	for i, o := range p.Outcomes {
		text, written := o.Write.Annotations[key]
		if !written {
			text = v.Members[i].Object.Annotations[key]
		}
		if text == "" {
			text = "-"
		}
		words = append(words, text)
	}
	return strings.Join(words, "/")
}

// reasons are the tables of the conditions.
var reasons = map[mcm.MachineDeploymentConditionType]reason.Table{
	ConditionBalanced: reason.ZonesBalanced, ConditionShare: reason.PoolExcessSpread, ConditionRights: reason.RightsGranted,
}

// condition of a member, as in "False NoRoom"; empty where there is none.
func condition(p Plan, name string, kind mcm.MachineDeploymentConditionType) string {
	for _, c := range of(p, name).Conditions {
		if c.Type == kind {
			entry := reasons[kind].Find(c.Reason)
			if entry.Meaning == "" || c.Status != (entry.Status == reason.True) {
				return fmt.Sprintf("%t %s, which the table of reasons does not explain", c.Status, c.Reason)
			}
			if c.Status {
				return "True " + c.Reason
			}
			return "False " + c.Reason
		}
	}
	return ""
}

func message(p Plan, name string, kind mcm.MachineDeploymentConditionType) string {
	for _, c := range of(p, name).Conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}
