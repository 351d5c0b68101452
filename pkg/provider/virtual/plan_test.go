// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const immediately = time.Duration(0)

func machine(name string, change ...func(*VM)) VM {
	v := VM{Name: name, Class: "c", Hardware: Hardware{Zone: "z", TaintsAtRegistration: true}, Created: noon, BootDelay: 10 * time.Second}
	for _, c := range change {
		c(&v)
	}
	return v
}

func dead(v *VM)       { v.Dead = true }
func registered(v *VM) { v.Registered = true }
func real(v *VM)       { v.Hardware.Real = true }

// nodeWith is the Node of a machine that registered in good health, changed.
func nodeWith(v VM, change ...func(*corev1.Node)) *corev1.Node {
	node := nodeOf(v, nil, Fault{}, noon)
	for _, c := range change {
		c(node)
	}
	return node
}

func held(n *corev1.Node)  { n.Annotations[KwokAnnotation] = KwokHeld }
func going(n *corev1.Node) { now := metav1.NewTime(noon); n.DeletionTimestamp = &now }

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = mergeConditions(n.Status.Conditions, []corev1.NodeCondition{conditionOf(kind, status, reason, noon)})
	}
}

// told is a plan in words.
func told(p Plan) string {
	var words []string
	for _, v := range p.Register {
		words = append(words, "register "+v.Name)
	}
	for _, v := range p.Bury {
		words = append(words, "bury "+v.Name)
	}
	for _, c := range p.Change {
		change := []string{"change", c.VM.Name}
		if c.Kwok != "" {
			change = append(change, c.Kwok)
		}
		for _, condition := range c.Conditions {
			change = append(change, fmt.Sprintf("%s=%s", condition.Type, condition.Status))
		}
		words = append(words, strings.Join(change, " "))
	}
	if !p.Again.IsZero() {
		words = append(words, "again in "+p.Again.Sub(noon).String())
	}
	return strings.Join(words, "; ")
}

var _ = DescribeTable("A plan", func(v VM, node *corev1.Node, f Fault, after time.Duration, expected string) {
	view := View{Now: noon.Add(after), VMs: []VM{v}, Nodes: map[string]*corev1.Node{}, Faults: Faults{Machines: named[string, Fault]{v.Name: f}}}
	if node != nil {
		view.Nodes[node.Name] = node
	}
	Expect(told(NewPlan(view))).To(Equal(expected))
},
	Entry("waits for the boot", machine("a"), nil, Fault{}, time.Second, "again in 10s"),
	Entry("registers when it is over", machine("a"), nil, Fault{}, 10*time.Second, "register a"),
	Entry("waits longer in a slow zone", machine("a"), nil, Fault{ExtraBootDelay: time.Minute}, 11*time.Second, "again in 1m10s"),
	Entry("does not register who is cut off", machine("a"), nil, Fault{Ready: "Unknown"}, time.Hour, ""),
	Entry("does not register the dead", machine("a", dead), nil, Fault{}, time.Hour, ""),
	Entry("leaves the registration of a real one to its kubelet", machine("a", real), nil, Fault{}, time.Hour, ""),
	Entry("leaves the Node of a real one to its kubelet", machine("a", real, registered), nodeWith(machine("a", real)), Fault{Ready: "False"}, time.Hour, ""),
	Entry("buries a real one", machine("a", real), nil, Fault{Dead: true}, time.Hour, "bury a"),
	Entry("buries who dies while it boots", machine("a"), nil, Fault{Dead: true}, time.Hour, "bury a"),
	Entry("leaves the healthy alone", machine("a", registered), nodeWith(machine("a")), Fault{}, time.Hour, ""),
	Entry("never registers twice", machine("a", registered), nil, Fault{}, time.Hour, ""),
	Entry("does not take another's name", machine("a"), nodeWith(machine("a"), func(n *corev1.Node) { n.Spec.ProviderID = "other" }), Fault{}, time.Hour, ""),
	Entry("does not touch another's Node", machine("a", registered), nodeWith(machine("a"), func(n *corev1.Node) { n.Spec.ProviderID = "other" }), Fault{Dead: true}, time.Hour, "bury a"),
	Entry("does not touch a Node that goes", machine("a", registered), nodeWith(machine("a"), going), Fault{Ready: "False"}, time.Hour, ""),
	Entry("waits for the Node of an earlier life to go", machine("a"), nodeWith(machine("a"), going), Fault{}, time.Hour, ""),

	Entry("cuts off", machine("a", registered), nodeWith(machine("a")), Fault{Ready: "Unknown"}, immediately, "change a held Ready=Unknown"),
	Entry("cuts off in the other way", machine("a", registered), nodeWith(machine("a")), Fault{Ready: "False"}, immediately, "change a held Ready=False"),
	Entry("rests when it is cut off", machine("a", registered), nodeWith(machine("a"), held, condition("Ready", "False", reasonFault)), Fault{Ready: "False"}, immediately, ""),
	Entry("cuts off in the other way when the fault changes", machine("a", registered), nodeWith(machine("a"), held, condition("Ready", "Unknown", reasonFault)), Fault{Ready: "False"}, immediately, "change a Ready=False"),
	Entry("leaves alone a Node that others report as not ready while it is cut off", machine("a", registered),
		nodeWith(machine("a"), held, condition("Ready", "Unknown", "NodeStatusUnknown")), Fault{Ready: "False"}, immediately, ""),
	Entry("keeps it cut off when another client writes Ready", machine("a", registered), nodeWith(machine("a"), held), Fault{Ready: "Unknown"}, immediately, "change a Ready=Unknown"),
	Entry("ends it", machine("a", registered), nodeWith(machine("a"), held, condition("Ready", "Unknown", "NodeStatusUnknown")), Fault{}, immediately, "change a fake Ready=True"),
	Entry("ends it half way", machine("a", registered), nodeWith(machine("a"), held), Fault{}, immediately, "change a fake Ready=True"),
	Entry("leaves alone what others say of readiness", machine("a", registered), nodeWith(machine("a"), condition("Ready", "Unknown", "NodeStatusUnknown")), Fault{}, immediately, ""),

	Entry("lets die", machine("a", registered), nodeWith(machine("a")), Fault{Dead: true}, immediately, "bury a; change a held Ready=Unknown"),
	Entry("does not raise the dead", machine("a", registered, dead), nodeWith(machine("a"), held, condition("Ready", "Unknown", reasonFault)), Fault{}, immediately, ""),
	Entry("finishes a death after a crash", machine("a", registered, dead), nodeWith(machine("a")), Fault{}, immediately, "change a held Ready=Unknown"),

	Entry("sets conditions", machine("a", registered), nodeWith(machine("a")), pressure("True"), immediately, "change a DiskPressure=True"),
	Entry("rests when they are set", machine("a", registered), nodeWith(machine("a"), condition("DiskPressure", "True", reasonFault)), pressure("True"), immediately, ""),
	Entry("sets them again when kwok wrote over them", machine("a", registered), nodeWith(machine("a"), condition("DiskPressure", "False", "KubeletHasNoDiskPressure")), pressure("True"), immediately, "change a DiskPressure=True"),
	Entry("sets them while it cuts off", machine("a", registered), nodeWith(machine("a")), cutOffWith("True"), immediately, "change a held DiskPressure=True Ready=Unknown"),
	Entry("leaves alone what is unknown of a Node that is cut off: another client would write it without end", machine("a", registered),
		nodeWith(machine("a"), held, condition("Ready", "Unknown", reasonFault), condition("DiskPressure", "Unknown", "NodeStatusUnknown")), cutOffWith("True"), immediately, ""),
	Entry("sets them on a Node that is cut off when they change", machine("a", registered),
		nodeWith(machine("a"), held, condition("Ready", "Unknown", reasonFault), condition("DiskPressure", "Unknown", reasonFault)), cutOffWith("True"), immediately, "change a DiskPressure=True"),
	Entry("sets them again when it is no longer cut off", machine("a", registered),
		nodeWith(machine("a"), condition("DiskPressure", "Unknown", "NodeStatusUnknown")), pressure("True"), immediately, "change a DiskPressure=True"),
	Entry("takes them back", machine("a", registered), nodeWith(machine("a"), condition("DiskPressure", "True", reasonFault)), Fault{}, immediately, "change a DiskPressure=False"),
	Entry("takes back what no kubelet knows", machine("a", registered), nodeWith(machine("a"), condition("KernelDeadlock", "True", reasonFault)), Fault{}, immediately, "change a KernelDeadlock=False"),
	Entry("leaves others' conditions alone", machine("a", registered), nodeWith(machine("a"), condition("KernelDeadlock", "True", "DockerHung")), Fault{}, immediately, ""),
)

func pressure(status corev1.ConditionStatus) Fault {
	return Fault{Conditions: map[corev1.NodeConditionType]corev1.ConditionStatus{corev1.NodeDiskPressure: status}}
}

// cutOffWith is the fault of a Node that is cut off and has pressure.
func cutOffWith(status corev1.ConditionStatus) Fault {
	f := pressure(status)
	f.Ready = corev1.ConditionUnknown
	return f
}

var _ = Describe("Plans", func() {
	It("come to rest when they are carried out, whatever order things are seen in", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			view := drawView(t)
			shuffled := view
			shuffled.VMs = rapid.Permutation(view.VMs).Draw(t, "order")
			if a, b := told(NewPlan(view)), told(NewPlan(shuffled)); a != b {
				t.Fatalf("the order matters:\n%s\n%s", a, b)
			}
			rest := NewPlan(carriedOut(view, NewPlan(view)))
			rest.Again = time.Time{}
			if told(rest) != "" {
				t.Fatalf("still to do after %s: %s", told(NewPlan(view)), told(rest))
			}
		})
	})

	It("register nobody before the time, and everybody at it", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			view := drawView(t)
			plan := NewPlan(view)
			for _, v := range plan.Register {
				if v.RegistersAt(view.Faults.ForMachine(v.Hardware.Zone, v.Class, v.Name)).After(view.Now) {
					t.Fatalf("%s is early", v.Name)
				}
			}
			for _, v := range view.VMs {
				f := view.Faults.ForMachine(v.Hardware.Zone, v.Class, v.Name)
				waits := !v.Registered && !v.Dead && !f.Dead && f.Ready == "" && v.RegistersAt(f).After(view.Now)
				if waits && (plan.Again.IsZero() || plan.Again.After(v.RegistersAt(f))) {
					t.Fatalf("%s would be late", v.Name)
				}
			}
			if plan.Again.IsZero() {
				return
			}
			if !plan.Again.After(view.Now) {
				t.Fatalf("asks to be called again at once: %s", plan.Again.Sub(view.Now))
			}
			view.Now = plan.Again
			if later := NewPlan(view); len(later.Register) <= len(plan.Register) {
				t.Fatalf("woke for nothing: %s, then %s", told(plan), told(later))
			}
		})
	})

	It("wait for the first of several, which need not be the first that was made", func() {
		faults := Faults{Machines: named[string, Fault]{"a": {ExtraBootDelay: time.Hour}}}
		view := View{Now: noon, VMs: []VM{machine("a"), machine("b", func(v *VM) { v.BootDelay = time.Minute })}, Faults: faults}
		Expect(told(NewPlan(view))).To(Equal("again in 1m0s"))
	})

	It("leave nodes out where there is no target cluster, but not deaths", func() {
		faults := Faults{Classes: named[string, Fault]{"c": {Dead: true}}}
		Expect(told(NewPlan(View{Now: noon.Add(time.Hour), VMs: []VM{machine("a")}, Nodeless: true, Faults: faults}))).To(Equal("bury a"))
	})
})

func drawView(t *rapid.T) View {
	kinds := []corev1.NodeConditionType{"DiskPressure", "KernelDeadlock"}
	statuses := rapid.SampledFrom([]corev1.ConditionStatus{"True", "False", "Unknown"})
	faults := rapid.Custom(func(t *rapid.T) Fault {
		return Fault{
			Ready: rapid.SampledFrom([]corev1.ConditionStatus{"", "", "False", "Unknown"}).Draw(t, "ready"),
			Dead:  rapid.IntRange(0, 5).Draw(t, "dead") == 0, ExtraBootDelay: time.Duration(rapid.IntRange(0, 9).Draw(t, "extra")) * time.Second,
			Conditions: rapid.MapOfN(rapid.SampledFrom(kinds), statuses, 0, 2).Draw(t, "conditions"),
		}
	})
	view := View{Now: noon.Add(time.Duration(rapid.IntRange(0, 25).Draw(t, "now")) * time.Second), Nodes: map[string]*corev1.Node{}}
	view.Faults.Machines = named[string, Fault]{}
	for i := range rapid.IntRange(0, 6).Draw(t, "machines") {
		v := machine(fmt.Sprint("m", i), func(v *VM) {
			v.BootDelay = time.Duration(rapid.IntRange(0, 20).Draw(t, "boot")) * time.Second
			v.Registered, v.Dead = rapid.Bool().Draw(t, "registered"), rapid.IntRange(0, 5).Draw(t, "was dead") == 0
		})
		view.VMs = append(view.VMs, v)
		view.Faults.Machines[v.Name] = faults.Draw(t, "fault")
		if v.Registered {
			view.Nodes[v.Name] = nodeWith(v, condition(rapid.SampledFrom(append(kinds, "Ready")).Draw(t, "kind"), statuses.Draw(t, "status"),
				rapid.SampledFrom([]string{reasonFault, "Other"}).Draw(t, "reason")))
			view.Nodes[v.Name].Annotations[KwokAnnotation] = rapid.SampledFrom([]string{KwokFake, KwokHeld}).Draw(t, "kwok")
		}
	}
	return view
}

// carriedOut is the view after the plan took effect.
func carriedOut(view View, p Plan) View {
	view.VMs = slices.Clone(view.VMs)
	for i, v := range view.VMs {
		same := func(w VM) bool { return w.Name == v.Name }
		if slices.ContainsFunc(p.Register, same) {
			view.VMs[i].Registered = true
			view.Nodes[v.Name] = nodeOf(v, nil, view.Faults.ForMachine(v.Hardware.Zone, v.Class, v.Name), view.Now)
		}
		view.VMs[i].Dead = v.Dead || slices.ContainsFunc(p.Bury, same)
	}
	for _, c := range p.Change {
		node := c.Node.DeepCopy()
		if c.Kwok != "" {
			node.Annotations[KwokAnnotation] = c.Kwok
		}
		node.Status.Conditions = mergeConditions(node.Status.Conditions, c.Conditions)
		view.Nodes[c.VM.Name] = node
	}
	return view
}
