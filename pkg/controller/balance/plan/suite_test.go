// SPDX-License-Identifier: Apache-2.0

package plan_test

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

func TestPlan(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Plan of balance")
}

func share(n int) Change { return Annotate(v1alpha1.ShareAnnotation, strconv.Itoa(n)) }
func requested(n int) Change {
	return Annotate(v1alpha1.RequestedExcessAnnotation, v1alpha1.RequestedExcess{Reserve: "r", Machines: int32(n)}.String())
}
func bounds(text string) Change   { return Annotate(v1alpha1.BoundsAnnotation, text) }
func move(m v1alpha1.Move) Change { return Annotate(v1alpha1.MoveAnnotation, m.String()) }
func nodeLabel(k, v string) Change {
	return func(m *Member) { m.Template.Labels[k], m.Fresh.Labels[k] = v, v }
}
func paused(m *Member)      { m.Object.Spec.Paused = true }
func noSet(m *Member)       { m.NoSet = true }
func drained(m *Member)     { Annotate(v1alpha1.DrainReserveAnnotation, "true")(m) }
func rollout(m *Member)     { m.Rollout.Spread = true }
func frozenLabel(m *Member) { m.Object.Labels = map[string]string{"freeze": "True"} }
func frozen(m *Member) {
	m.Object.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: mcm.MachineDeploymentFrozen, Status: mcm.ConditionTrue}}
}
func unknownTemplate(m *Member) { m.Template, m.Fresh = nil, nil }
func machines(all ...Machine) Change {
	return func(m *Member) { m.Machines = append(m.Machines, all...) }
}

func inReserve(m *Machine) {
	m.Object.Annotations[v1alpha1.ReserveAnnotation] = v1alpha1.Reserve{Since: Born}.String()
}

// exhausted could not be made: its zone has no capacity.
func exhausted(m *Machine) {
	m.Object.Status.CurrentStatus.Phase = mcm.MachineCrashLoopBackOff
	m.Object.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: "ResourceExhausted"}
}

// broken ran until its health checks failed for too long.
func broken(m *Machine) {
	m.Object.Status.CurrentStatus.Phase = mcm.MachineFailed
	m.Object.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationHealthCheck, State: mcm.MachineStateFailed}
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

func view(members ...Member) View {
	return View{Now: Noon, Settings: NewSettings(), Members: members, Garden: Garden{Known: true}, Memory: Memory{}}
}

// pod of a Deployment, one CPU large, that runs on a node unless that is empty.
func pod(name, node string, changes ...func(*corev1.Pod)) *fit.Pod {
	return fit.NewPod(StoredPod(name, node, changes...), &fit.Lookups{})
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
		for _, key := range []string{v1alpha1.AppliedReplicasAnnotation, v1alpha1.ShareAnnotation, v1alpha1.BoundsAnnotation, v1alpha1.GivenBoundsAnnotation, v1alpha1.MoveAnnotation, v1alpha1.DeclinedMoveAnnotation, v1alpha1.OwnExcessAnnotation} {
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
