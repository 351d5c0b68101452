// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

var _ = Describe("A pod that waits", func() {
	bound := func(zone string) *fit.Pod { return pod("bound", "", InZone(zone)) }
	odd := func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device"}} }

	DescribeTable("keeps growth where it can run", func(want string, pods ...*fit.Pod) {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		w.Waiting = pods
		w.ask("b", 5)
		w.settle()
		Expect(w.replicas()).To(Equal(want))
	},
		Entry("anywhere", "3/3/3", pod("free", "")),
		Entry("in its zone", "2/5/2", bound("b")),
		Entry("in its zone, among others", "2/5/2", pod("free", ""), bound("b")),
		Entry("not here at all, so it is no reason", "3/3/3", bound("a")),
		Entry("too large for any, so it is no reason", "3/3/3", pod("large", "", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"no": "such"}
		})),
		Entry("that cannot be decided", "2/5/2", pod("odd", "", odd)),
		Entry("that cannot be decided, but not here at all, so it is no reason", "3/3/3", pod("odd", "", odd, InZone("a"))),
	)

	It("says so", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		w.Waiting = []*fit.Pod{bound("b")}
		w.ask("b", 5)
		p := New(w.View)
		Expect(condition(p, "b", ConditionBalanced)).To(Equal("False PodsBound"))
		Expect(p.Blocks).To(HaveKeyWithValue("b", "PodsBound"))
	})

	DescribeTable("and is not there yet is taken to be like those that run where growth was asked for", func(want string, waiting *fit.Pod, pods ...*fit.Pod) {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		w.put("b", 0, pods...)
		if waiting != nil {
			w.Waiting = []*fit.Pod{waiting}
		}
		w.ask("b", 5)
		w.settle()
		Expect(w.replicas()).To(Equal(want))
	},
		Entry("none run", "3/3/3", nil),
		Entry("they could run anywhere", "3/3/3", nil, pod("free", "b-0")),
		Entry("all are bound to the zone", "2/5/2", nil, pod("x", "b-0", InZone("b")), pod("y", "b-0", InZone("b"), app("y"))),
		Entry("some are bound to the zone", "3/3/3", nil, pod("x", "b-0", InZone("b")), pod("free", "b-0")),
		Entry("all are bound to the zone, but those that wait decide", "3/3/3", pod("free", ""), pod("x", "b-0", InZone("b"))),
		Entry("all are bound to the zone, and those that wait could not run there", "2/5/2", bound("a"), pod("x", "b-0", InZone("b"))),
	)

	It("keeps growth where spread and other pods allow it", func() {
		w := newWorld(zones(ScaleUp, 1, 1)...)
		apart := func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "x"}
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			}}}}
		}
		node := w.Members[0].Fresh.DeepCopy()
		node.Name = "a-0"
		w.Nodes = []fit.Node{{Object: node, Pods: []*fit.Pod{pod("there", "a-0", apart)}}}
		w.Waiting = []*fit.Pod{pod("waits", "", apart)}
		w.ask("b", 3)
		w.settle()
		Expect(w.replicas()).To(Equal("1/3"), "a has one of its kind")
	})

	It("where nothing is known of a zone keeps growth from there", func() {
		members := zones(ScaleUp, 2, 2)
		members[1].Fresh = nil
		w := newWorld(members...)
		w.Waiting = []*fit.Pod{pod("free", "")}
		w.ask("a", 4)
		w.settle()
		Expect(w.replicas()).To(Equal("4/2"))
	})
})

func aged(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(Noon.Add(-d)) }
}

func safe(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": text}
	}
}

func local(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

// ofSystem is a pod of kube-system that was created a minute ago.
func ofSystem(p *corev1.Pod) {
	aged(time.Minute)(p)
	p.Namespace = metav1.NamespaceSystem
}

func alone(p *corev1.Pod) { p.OwnerReferences = nil }

func app(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": name} }
}

// budget of the pods of an app.
func budget(app string, allowed int) pool.Budget {
	return pool.Budget{Namespace: "default", Name: app, Selector: labels.SelectorFromSet(labels.Set{"app": app}), Allowed: allowed}
}

// second is another budget of the same pods.
func second(b pool.Budget) pool.Budget {
	b.Name += "-2"
	return b
}

var _ = Describe("The machine that goes", func() {
	// gone is the machine that a would lose to b, or why there is none.
	gone := func(v View) string {
		w := newWorld(v.Members...)
		w.Nodes, w.Budgets, w.BudgetsUnknown, w.Settings = v.Nodes, v.Budgets, v.BudgetsUnknown, v.Settings
		w.Members[1].Machines = append(w.Members[1].Machines, NewMachine("b-r", inReserve))
		share(1)(&w.Members[1])
		move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})(&w.Members[1])
		p := New(w.View)
		if text := of(p, "a").Write.Annotations[v1alpha1.MoveAnnotation]; text != "" {
			m, err := v1alpha1.ParseMove(text)
			Expect(err).NotTo(HaveOccurred())
			return m.Machine
		}
		Expect(writes(p)).To(Equal("b: -share -move"), "what was made for it is given up")
		Expect(p.Blocks).To(HaveKey("a"))
		return p.Blocks["a"]
	}
	// three are the pods of a-0, a-1 and a-2.
	three := func(pods ...[]*fit.Pod) View {
		v := view(zones(Continuous, 3, 1)...)
		for i, of := range pods {
			m := &v.Members[0].Machines[i]
			hold(m, of...)
			v.Nodes = append(v.Nodes, fit.Node{Object: node(m.Object.Name), Pods: of})
		}
		return v
	}
	some := func(pods ...*fit.Pod) []*fit.Pod { return pods }
	oldest := func(n int, v View) View {
		bornAt(Born.Add(-time.Second))(&v.Members[0].Machines[n])
		return v
	}

	DescribeTable("is", func(want string, v View, budgets ...pool.Budget) {
		v.Budgets = budgets
		Expect(gone(v)).To(Equal(want))
	},
		Entry("the emptiest", "a-1", three(some(pod("x", "a-0")), some(), some(pod("y", "a-2")))),
		Entry("the one with fewest pods", "a-2", three(some(pod("x", "a-0"), pod("y", "a-0")), some(pod("z", "a-1"), pod("u", "a-1")), some(pod("v", "a-2")))),
		Entry("the one whose pods have run longest", "a-1", three(some(pod("x", "a-0", aged(time.Minute))), some(pod("y", "a-1", aged(time.Hour))), some(pod("z", "a-2", aged(time.Second))))),
		Entry("the oldest, where none has pods", "a-1", oldest(1, three())),
		Entry("the oldest, where pods have run equally long", "a-2", oldest(2, three(some(pod("x", "a-0")), some(pod("y", "a-1")), some(pod("z", "a-2"))))),
		Entry("not one with a pod that is not to be evicted", "a-1", three(some(pod("x", "a-0", safe("false"))), some(pod("y", "a-1")), some(pod("z", "a-2")))),
		Entry("not one with a pod that no controller would recreate", "a-1", three(some(pod("x", "a-0", alone)), some(pod("y", "a-1")), some(pod("z", "a-2")))),
		Entry("one with such a pod that may go", "a-0", three(some(pod("x", "a-0", alone, safe("true"))), some(pod("y", "a-1")), some(pod("z", "a-2")))),
		Entry("one whose pods could run there", "a-2", three(some(pod("x", "a-0", InZone("a"))), some(pod("y", "a-1", InZone("a"))), some(pod("z", "a-2", InZone("b"))))),
		Entry("not one whose pods have no room together", "a-1", three(some(pod("x", "a-0", Large), pod("y", "a-0", Large)), some(pod("u", "a-1"), pod("v", "a-1")), some(pod("z", "a-2", InZone("a"))))),
		Entry("one that a budget lets go", "a-1", three(some(pod("x", "a-0", app("q"))), some(pod("y", "a-1", app("s"))), some(pod("z", "a-2", app("q")))), budget("q", 0), budget("s", 1)),
		Entry("none where no budget lets one go", "PodDisruptionBudget", three(some(pod("x", "a-0", app("q"))), some(pod("y", "a-1", app("q"))), some(pod("z", "a-2", app("q")))), budget("q", 0)),
		Entry("none where a budget lets one pod go of two", "PodDisruptionBudget", three(some(pod("x", "a-0", app("q")), pod("u", "a-0", app("q"))), some(pod("y", "a-1", app("q")), pod("v", "a-1", app("q"))), some(pod("z", "a-2", app("q")), pod("w", "a-2", app("q")))), budget("q", 1)),
		Entry("not one with a pod that two budgets select, which Kubernetes never evicts", "a-1",
			three(some(pod("x", "a-0", app("q"))), some(pod("y", "a-1", app("s"))), some(pod("z", "a-2", app("q")))), budget("q", 1), second(budget("q", 1))),
		Entry("not one with a pod on local storage", "a-1", three(some(pod("x", "a-0", local)), some(pod("y", "a-1")), some(pod("z", "a-2")))),
		Entry("not one with a young pod of kube-system", "a-1", three(some(pod("x", "a-0", ofSystem)), some(pod("y", "a-1")), some(pod("z", "a-2")))),
		Entry("none where none could run there", "PodsBound", three(some(pod("x", "a-0", InZone("a"))), some(pod("y", "a-1", InZone("a"))), some(pod("z", "a-2", InZone("a"))))),
		Entry("none where none is to be evicted", "NotSafeToEvict", three(some(pod("x", "a-0", safe("false"))), some(pod("y", "a-1", safe("false"))), some(pod("z", "a-2", safe("false"))))),
	)

	It("is none where budgets are needed for machines that are about to go elsewhere", func() {
		v := three(some(pod("x", "a-0", app("q"))), some(pod("y", "a-1", app("q"))), some(pod("z", "a-2", app("q"))))
		v.Budgets = []pool.Budget{budget("q", 1)}
		other := NewMember("other", 1)
		hold(&other.Machines[0], pod("u", "other-0", app("q")))
		v.Members = append(v.Members, other)
		Expect(gone(v)).To(Equal("a-0"))
		v.Members[2].Machines[0].Named = true
		Expect(gone(v)).To(Equal("PodDisruptionBudget"))
	})

	It("may have pods on local storage and of kube-system, if the settings say so", func() {
		v := three(some(pod("x", "a-0", local)), some(pod("y", "a-1", ofSystem)), some(pod("z", "a-2", safe("false"))))
		Expect(gone(v)).To(Equal("LocalStorage"))
		v.Settings.Eviction.LocalStorage = true
		Expect(gone(v)).To(Equal("a-0"))
		v.Settings.Eviction = pool.EvictionRule{SystemPods: true}
		Expect(gone(v)).To(Equal("a-1"))
	})

	It("is one without pods while budgets are not known", func() {
		v := three(some(pod("x", "a-0")), some(), some(pod("z", "a-2")))
		v.BudgetsUnknown = "they have not been read yet"
		Expect(gone(v)).To(Equal("a-1"))
		hold(&v.Members[0].Machines[1], pod("y", "a-1"))
		Expect(gone(v)).To(Equal("PodDisruptionBudget"))
	})

	It("is none that may have pods which cannot be seen", func() {
		v := three(some(), some(pod("x", "a-1")), some(pod("y", "a-2"), pod("z", "a-2")))
		v.Members[0].Machines[0].Unseen = true
		Expect(gone(v)).To(Equal("a-1"))
	})

	It("is no machine that a user ranked or preserves", func() {
		v := three(some(), some(), some(pod("x", "a-2")))
		v.Members[0].Machines[0].Object.Annotations["machinepriority.machine.sapcloud.io"] = "4" // 3 is the default
		v.Members[0].Machines[1].Preserved = true
		Expect(gone(v)).To(Equal("a-2"))
	})

	// arrived is a view in which the replica of a-0 has arrived in b.
	arrived := func(pods ...[]*fit.Pod) View {
		v := three(pods...)
		move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})(&v.Members[0])
		move(v1alpha1.Move{ID: "1", From: "a", Taken: 1})(&v.Members[1])
		return v
	}
	ranked := func(m *Machine) { m.Object.Annotations["machinepriority.machine.sapcloud.io"] = "7" }
	preserved := func(m *Machine) {
		m.Preserved = true
	}

	DescribeTable("is another where it may not go any more once its replica has arrived", func(change func(*Machine), first ...*fit.Pod) {
		v := arrived(first, some(pod("y", "a-1"), pod("u", "a-1")), some(pod("z", "a-2"), pod("v", "a-2"), pod("w", "a-2")))
		change(&v.Members[0].Machines[0])
		Expect(writes(New(v))).To(Equal(`a: move={"id":"1","to":{"b":1},"machine":"a-1"}`))
	},
		Entry("since a pod must not be evicted", func(*Machine) {}, pod("x", "a-0", safe("false"))),
		Entry("since no controller would recreate a pod", func(*Machine) {}, pod("x", "a-0", alone)),
		Entry("since a pod is bound to its zone", func(*Machine) {}, pod("x", "a-0", InZone("a"))),
		Entry("since it is preserved", preserved),
		Entry("since a user ranked it", ranked),
		Entry("since an autoscaler is about to lower replicas for it", rankedAs("1")),
		Entry("since it is in reserve", inReserve),
		Entry("since it leaves", leaving),
		Entry("since it is not ready", phase(mcm.MachineUnknown)),
		Entry("since it is gone", func(m *Machine) { m.Object.Name = "other"; leaving(m) }),
	)

	named := func(v View) string { return of(New(v), "a").Write.Annotations[machineutils.TriggerDeletionByMCM] }
	changed := func(v View) string {
		return of(New(v), "a").Write.Annotations[machineutils.LastDeploymentReplicaChangeByScalerTime]
	}

	It("is named later than replicas were changed, whichever clock set that time, so that only the number makes it go", func() {
		v := arrived()
		Expect(named(v)).To(Equal("a-0~2026-03-01T12:00:00Z"))
		Expect(changed(v)).To(Equal("2026-03-01T11:59:59Z"), "there was none, and machine-controller-manager would take the present")
		Annotate(machineutils.LastDeploymentReplicaChangeByScalerTime, "2026-03-01T12:30:00Z")(&v.Members[0])
		Expect(named(v)).To(Equal("a-0~2026-03-01T12:30:01Z"))
		Expect(changed(v)).To(BeEmpty())
	})

	It("is named with the time where machine-controller-manager sees as many machines as before", func() {
		v := arrived()
		Annotate(v1alpha1.AppliedExcessAnnotation, v1alpha1.AppliedExcess{Machines: 2, Max: new(int32(3))}.String())(&v.Members[0])
		Expect(named(v)).To(Equal("a-0~2026-03-01T12:00:00Z"))
		Expect(changed(v)).To(Equal("2026-03-01T12:00:00Z"))
	})

	It("is named with the time where growth takes effect in the same write, since its member is not balanced any more", func() {
		v := arrived()
		asked(5)(&v.Members[0])
		Mode(v1alpha1.BalanceOff)(&v.Members[0])
		Expect(writes(New(v))).To(Equal("a: r=4 applied-replicas=4 -move gone=a-0"))
		Expect(named(v)).To(Equal("a-0~2026-03-01T12:00:00Z"))
		Expect(changed(v)).To(Equal("2026-03-01T12:00:00Z"))
	})

	It("is deleted by the time where replicas were raised before it went", func() {
		v := view(zones(Continuous, 3, 3)...)
		Annotate(machineutils.TriggerDeletionByMCM, "a-0~2026-03-01T11:59:55Z")(&v.Members[0])
		Annotate(machineutils.LastDeploymentReplicaChangeByScalerTime, "2026-03-01T11:59:54Z")(&v.Members[0])
		p := New(v)
		Expect(of(p, "a").Write.IsEmpty()).To(BeTrue())
		Expect(p.Again).To(Equal(5 * time.Second))
		v.Now = v.Now.Add(p.Again)
		Expect(of(New(v), "a").Write.Annotations).To(Equal(map[string]string{machineutils.LastDeploymentReplicaChangeByScalerTime: "2026-03-01T12:00:05Z"}))
		leaving(&v.Members[0].Machines[0])
		Expect(of(New(v), "a").Write.IsEmpty()).To(BeTrue())
	})

	It("waits for the end of a rollout, in which a smaller number would take others", func() {
		v := arrived()
		v.Members[0].Rollout.Spread = true
		p := New(v)
		Expect(writes(p)).To(BeEmpty())
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False Waiting"))
	})

	It("is the one that was promised, though an emptier one may go, too", func() {
		p := New(arrived(some(pod("x", "a-0")), some(), some(pod("z", "a-2"))))
		Expect(of(p, "a").Write.Gone).To(Equal("a-0"))
	})

	It("delays no growth of other members while it has to stay", func() {
		v := arrived(some(pod("x", "a-0", safe("false"))), some(pod("y", "a-1", safe("false"))), some(pod("z", "a-2", safe("false"))))
		v.Members = append(v.Members, NewMember("c", 4, Continuous, Applied(2)))
		v.Members[0].Object.Spec.Replicas = 5
		Expect(writes(New(v))).To(Equal("a: applied-replicas=5; c: applied-replicas=4"))
	})

	It("stays, and its replica too, while none may go", func() {
		v := three(some(pod("x", "a-0", safe("false"))), some(pod("y", "a-1", safe("false"))), some(pod("z", "a-2", safe("false"))))
		move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})(&v.Members[0])
		move(v1alpha1.Move{ID: "1", From: "a", Taken: 1})(&v.Members[1])
		p := New(v)
		Expect(writes(p)).To(BeEmpty())
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False NotSafeToEvict"))
	})
})

var _ = Describe("A machine's pods", func() {
	// apart is not to run twice in a region.
	apart := func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "x"}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelTopologyRegion, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		}}}}
	}
	// region is a view with all Nodes, and with pods on the machines of a.
	region := func(pods ...[]*fit.Pod) View {
		v := view(continuous("a", len(pods)), created("b", 1))
		v.Members[1].Fresh.Labels[corev1.LabelTopologyRegion] = "r"
		for i, all := range pods {
			m := &v.Members[0].Machines[i]
			hold(m, all...)
			n := node(m.Object.Name)
			n.Labels[corev1.LabelTopologyRegion] = "r"
			v.Nodes = append(v.Nodes, fit.Node{Object: n, Pods: all})
		}
		return v
	}
	goes := func(v View) string {
		m, err := v1alpha1.ParseMove(of(New(v), "a").Write.Annotations[v1alpha1.MoveAnnotation])
		if err != nil {
			return "none"
		}
		return m.Machine
	}
	some := func(pods ...*fit.Pod) []*fit.Pod { return pods }

	It("do not keep themselves from another zone", func() {
		Expect(goes(region(some(pod("x", "a-0", apart)), some(pod("y", "a-1"), pod("z", "a-1")), some(pod("u", "a-2"), pod("v", "a-2"))))).To(Equal("a-0"))
	})

	It("keep others from the zone as long as they stay", func() {
		Expect(goes(region(some(pod("x", "a-0", apart)), some(pod("y", "a-1", apart)), some(pod("z", "a-2", apart))))).To(Equal("none"))
	})

	It("stay where they are, and take no room elsewhere, if one of them could not go", func() {
		bound := pod("bound", "a-0", InZone("a"))
		Expect(goes(region(some(pod("x", "a-0", Large), bound), some(pod("y", "a-1", Large), pod("z", "a-1")), some(pod("u", "a-2", InZone("a")))))).To(Equal("a-1"))
		Expect(goes(region(some(pod("x", "a-0", apart), bound), some(pod("y", "a-1", apart), pod("z", "a-1")), some(pod("u", "a-2", InZone("a")))))).To(Equal("none"))
	})

	It("that were promised to go come first, wherever their machine is", func() {
		for _, name := range []string{"a-0", "a-1", "a-2"} {
			v := view(continuous("a", 3, move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: name})), continuous("b", 3, took("1", "a")))
			hold(&v.Members[0].Machines[0], pod("x", "a-0"))
			hold(&v.Members[0].Machines[1], pod("y", "a-1"))
			hold(&v.Members[0].Machines[2], pod("z", "a-2"))
			Expect(of(New(v), "a").Write.Gone).To(Equal(name))
		}
	})

	It("that are newer than others stay, wherever they are in the list", func() {
		Expect(goes(region(
			some(pod("x", "a-0", aged(time.Minute)), pod("y", "a-0", aged(time.Hour))),
			some(pod("z", "a-1", aged(time.Hour)), pod("u", "a-1", aged(30*time.Minute))),
			some(pod("v", "a-2", aged(time.Minute)), pod("w", "a-2", aged(time.Hour))),
		))).To(Equal("a-1"))
	})

	It("may go while Nodes are ready", func() {
		v := view(continuous("a", 4), created("b", 1))
		for _, name := range []string{"u", "v", "w", "x", "y", "z"} {
			n := node(name)
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			v.Nodes = append(v.Nodes, fit.Node{Object: n})
		}
		Expect(goes(v)).To(Equal("a-0"))
	})
})
