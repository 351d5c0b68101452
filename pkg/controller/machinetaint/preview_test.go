// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"slices"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"

	"github.com/evenkeel/evenkeel/internal/keep"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	ours "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// all are the objects of a server.
func (a *alone) all() (o machinetaint.Objects) {
	GinkgoHelper()
	ctx, list := context.Background(), metav1.ListOptions{}
	deployments, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).List(ctx, list)
	Expect(err).NotTo(HaveOccurred())
	sets, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).List(ctx, list)
	Expect(err).NotTo(HaveOccurred())
	machines, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).List(ctx, list)
	Expect(err).NotTo(HaveOccurred())
	nodes, err := a.core.CoreV1().Nodes().List(ctx, list)
	Expect(err).NotTo(HaveOccurred())
	pods, err := a.core.CoreV1().Pods("").List(ctx, list)
	Expect(err).NotTo(HaveOccurred())
	o.Deployments, o.Sets, o.Machines = each(deployments.Items), each(sets.Items), each(machines.Items)
	o.Nodes, o.Pods = each(nodes.Items), each(pods.Items)
	return o
}

func each[T any](items []T) (all []*T) {
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

// said is what the controller writes of an object, so that two can be compared.
type said struct {
	annotations map[string]string
	taints      []corev1.Taint
	field       *int32
	conditions  int
}

func of(o machinetaint.Objects) map[string]said {
	all := map[string]said{}
	for _, d := range o.Deployments {
		all["deployment "+d.Name] = said{d.Annotations, nil, d.Spec.ExcessReplicas, len(d.Status.Conditions)}
	}
	for _, m := range o.Machines {
		all["machine "+m.Name] = said{m.Annotations, m.Spec.NodeTemplateSpec.Spec.Taints, nil, 0}
	}
	for _, n := range o.Nodes {
		all["node "+n.Name] = said{n.Annotations, n.Spec.Taints, nil, 0}
	}
	for name, s := range all {
		// As they are read from a server, which leaves out what is empty.
		if len(s.annotations) == 0 {
			s.annotations = nil
		}
		if len(s.taints) == 0 {
			s.taints = nil
		}
		all[name] = s
	}
	return all
}

// put replaces objects by those of the same names.
func put(o machinetaint.Objects, after machinetaint.After) machinetaint.Objects {
	o.Deployments = []*api.MachineDeployment{after.Deployment}
	for i, m := range o.Machines {
		if at := slices.IndexFunc(after.Machines, func(x *mcmapi.Machine) bool { return x.Name == m.Name }); at >= 0 {
			o.Machines[i] = after.Machines[at]
		}
	}
	for i, n := range o.Nodes {
		if at := slices.IndexFunc(after.Nodes, func(x *corev1.Node) bool { return x.Name == n.Name }); at >= 0 {
			o.Nodes[i] = after.Nodes[at]
		}
	}
	return o
}

var _ = Describe("A preview", func() {
	DescribeTable("comes to what the controller then writes, and writes nothing itself",
		func(serving, reserve int, patch string) {
			storm.Bubble(suite, func() {
				server := sim.New(sim.Options{Seed: 1, Resources: slices.Concat(sim.Core, sim.Machine)})
				defer server.Close()
				config := server.ConfigFor("user")
				config.QPS = -1
				a := &alone{Server: server, user: ours.NewForConfigOrDie(config), stock: stock.NewForConfigOrDie(config), core: kubernetes.NewForConfigOrDie(config)}
				a.pool(serving, reserve)
				a.patch("%s", patch)

				preview, err := machinetaint.NewPreview(keep.Settings{}, true)
				Expect(err).NotTo(HaveOccurred())
				o, before := a.all(), len(a.Writes())
				for range 3 {
					Expect(preview.SetObjects(o, time.Now())).To(Succeed())
					v, p, ok := preview.Plan(fixture.Namespace, "pool")
					Expect(ok).To(BeTrue())
					after, err := machinetaint.AfterPlan(v, p)
					Expect(err).NotTo(HaveOccurred())
					preview.Remember(v, p)
					o = put(o, after)
				}
				Expect(of(o)).NotTo(Equal(of(a.all())), "there was something to do")
				Expect(a.Writes()).To(HaveLen(before))

				end := a.start(machinetaint.Options{})
				a.wrote(0)
				end()
				Expect(of(o)).To(Equal(of(a.all())))
			})
		},
		Entry("of a reserve that grows", 2, 1, `{"spec":{"excessReplicas":3}}`),
		Entry("of a reserve that shrinks", 2, 2, `{"spec":{"excessReplicas":1}}`),
		Entry("of a reserve that serves", 2, 2, `{"spec":{"replicas":3}}`),
		Entry("of bounds", 2, 2, `{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/bounds":"1:3:2"}}}`),
		Entry("of a reserve that is drained", 2, 2, `{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/drain-reserve":"true"}}}`),
	)

	It("expects no Node where there is no target cluster", func() {
		d := &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: fixture.Namespace, Annotations: map[string]string{api.AppliedExcessAnnotation: "1"}}}
		for _, hasTarget := range []bool{true, false} {
			preview, err := machinetaint.NewPreview(keep.Settings{}, hasTarget)
			Expect(err).NotTo(HaveOccurred())
			Expect(preview.SetObjects(machinetaint.Objects{Deployments: []*api.MachineDeployment{d}}, time.Now())).To(Succeed())
			v, _, ok := preview.Plan(fixture.Namespace, "pool")
			Expect([]bool{ok, v.Targetless}).To(Equal([]bool{true, !hasTarget}))
		}
	})

	DescribeTable("sees whether more Nodes are not ready than its limits allow", func(limits pool.UnreadyLimits, want bool) {
		preview, err := machinetaint.NewPreview(keep.Settings{Unready: limits}, true)
		Expect(err).NotTo(HaveOccurred())
		d := &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: fixture.Namespace, Annotations: map[string]string{api.AppliedExcessAnnotation: "1"}}}
		nodes := []*corev1.Node{fixture.Node("a")}
		for _, name := range []string{"b", "c", "d", "e"} {
			nodes = append(nodes, fixture.Node(name, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }))
		}
		Expect(preview.SetObjects(machinetaint.Objects{Deployments: []*api.MachineDeployment{d}, Nodes: nodes}, time.Now())).To(Succeed())
		v, _, ok := preview.Plan(fixture.Namespace, "pool")
		Expect(ok).To(BeTrue())
		Expect(v.Unhealthy).To(Equal(want))
	},
		Entry("by default", pool.DefaultUnreadyLimits(), true),
		Entry("by their number", pool.UnreadyLimits{Count: 4, Percentage: 45}, false),
		Entry("by their percentage", pool.UnreadyLimits{Count: 3, Percentage: 80}, false),
	)

	DescribeTable("puts no machine that serves in reserve where there is no target cluster, since its pods cannot be seen", func(phase mcmapi.MachinePhase) {
		preview, err := machinetaint.NewPreview(keep.Settings{}, false)
		Expect(err).NotTo(HaveOccurred())
		d, set := poolOf("a"), setIn("a")
		d.UID, d.Annotations, d.Spec.Replicas, d.Spec.ExcessReplicas = "uid", map[string]string{api.AppliedExcessAnnotation: "1"}, 1, ptr.To[int32](1)
		set.UID, set.Spec.Replicas, set.Spec.Template = "uid", 2, d.Spec.Template
		o := machinetaint.Objects{Deployments: []*api.MachineDeployment{d}, Sets: []*mcmapi.MachineSet{set}}
		for _, name := range []string{"m", "n"} {
			m := machineIn("a")
			m.Name, m.Labels, m.Spec.ProviderID, m.Status.CurrentStatus.Phase = name, nil, "sim:///"+name, phase
			o.Machines = append(o.Machines, m)
		}
		Expect(preview.SetObjects(o, time.Now())).To(Succeed())
		v, p, ok := preview.Plan(fixture.Namespace, "a")
		Expect(ok).To(BeTrue())
		Expect(v.Machines).To(HaveLen(2))
		Expect(p.Rule.Moves).To(BeEmpty())
	},
		Entry("if it runs", mcmapi.MachineRunning),
		Entry("if it is available, as machines are without one", mcmapi.MachineAvailable),
	)

	It("remembers nothing of a MachineDeployment for another one of the same name", func() {
		preview, err := machinetaint.NewPreview(keep.Settings{}, false)
		Expect(err).NotTo(HaveOccurred())
		memory := keep.Memory{UID: "first", Applied: "1", Retry: reserve.Retry{Failures: 7, Until: time.Now().Add(time.Hour)}}
		for uid, want := range map[types.UID]keep.Memory{"first": memory, "second": {}} {
			d := &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: fixture.Namespace, UID: uid}}
			preview.Remember(keep.View{Deployment: d}, keep.Plan{Memory: memory})
			Expect(preview.SetObjects(machinetaint.Objects{Deployments: []*api.MachineDeployment{d}}, time.Now())).To(Succeed())
			v, _, ok := preview.Plan(fixture.Namespace, "pool")
			Expect(ok).To(BeTrue())
			Expect(v.Memory).To(Equal(want))
		}
	})

	It("sees what is born in reserve, and what serves", func() {
		preview, err := machinetaint.NewPreview(keep.Settings{}, false)
		Expect(err).NotTo(HaveOccurred())
		d := &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: fixture.Namespace, Annotations: map[string]string{api.AppliedExcessAnnotation: "1"}}}
		for replicas, born := range map[int32]bool{0: true, 1: false} {
			d.Spec.Replicas = replicas
			Expect(preview.SetObjects(machinetaint.Objects{Deployments: []*api.MachineDeployment{d}}, time.Now())).To(Succeed())
			m := preview.Created(fixture.Namespace, "pool", fixture.Machine("a"))
			Expect(m.Annotations[api.ReserveAnnotation] != "").To(Equal(born))
		}
	})
})
