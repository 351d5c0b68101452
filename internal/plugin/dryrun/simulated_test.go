// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	. "github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	machines "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	pools "github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/manager"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// actual is a simulated cluster in which the controller of MachineDeployments runs. Each pod takes a machine.
type actual struct {
	*storm.World
	ours versioned.Interface
	core kubernetes.Interface
	pods int
}

// playActual runs body on a cluster with a MachineDeployment p that is at rest, in virtual time.
func playActual(seed uint64, replicas int32, change func(*api.MachineDeployment), body func(a *actual)) {
	a := &actual{World: storm.NewWorld(sim.Options{Seed: seed, Resources: slices.Concat(sim.Core, sim.Machine)})}
	defer a.End()
	a.core, a.ours = world.Clients(a.ConfigFor("user"))
	a.Latency(2 * time.Millisecond)
	waker := world.NewWaker(a.World)
	cloud := &world.Cloud{Waker: waker, Boot: 20 * time.Second, Drain: 10 * time.Second, ChangeNode: func(m *mcm.Machine, node *corev1.Node) {
		template := m.Spec.NodeTemplateSpec
		node.Spec.Taints, node.Annotations = slices.Clone(template.Spec.Taints), maps.Clone(template.Annotations)
	}}
	a.Start("evenkeel", manager.Program(machinetaint.Settings{}))
	a.Start("machines", world.Actor{Waker: waker, Delay: time.Second, Reconcile: cloud.Reconcile}.Run)
	a.Start("workload", world.Actor{Waker: waker, Delay: time.Second, Reconcile: world.Scheduler{NoStatus: true, Replace: a.replace}.Reconcile}.Run)
	world.Create(a.deployments(), world.MachineDeployment("p", replicas, change))
	a.settle()
	body(a)
}

func (a *actual) deployments() machines.MachineDeploymentInterface {
	return a.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace)
}

func (a *actual) settle() {
	GinkgoHelper()
	Expect(a.Settle(25*time.Minute, 24*time.Hour)).To(Succeed())
}

// replace replaces a pod whose machine goes.
func (a *actual) replace(ctx context.Context, core kubernetes.Interface, pod *corev1.Pod) error {
	if err := core.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err := core.CoreV1().Pods(pod.Namespace).Create(ctx, a.newPod(), metav1.CreateOptions{})
	return err
}

func (a *actual) newPod() *corev1.Pod {
	a.pods++
	return fixture.Pod(fmt.Sprintf("work-%03d", a.pods), func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "work", UID: "1", Controller: new(true)}}
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	})
}

// work has so many pods run, and none wait.
func (a *actual) work(n int) {
	GinkgoHelper()
	for _, p := range a.objects().Pods {
		if p.Spec.NodeName == "" {
			world.Delete(a.core.CoreV1().Pods(fixture.Namespace), p.Name)
		} else {
			n--
		}
	}
	for range n {
		world.Create(a.core.CoreV1().Pods(fixture.Namespace), a.newPod())
	}
	a.settle()
}

// objects are what the plugin reads.
func (a *actual) objects() Objects {
	kind, core := mcm.SchemeGroupVersion.WithResource, corev1.SchemeGroupVersion.WithResource
	o := Objects{
		At: time.Now(), Target: true, Deployments: world.List[api.MachineDeployment](a, kind("machinedeployments")), Sets: world.List[mcm.MachineSet](a, kind("machinesets")),
		Machines: world.List[mcm.Machine](a, kind("machines")), Nodes: world.List[corev1.Node](a, core("nodes")), Pods: world.List[corev1.Pod](a, core("pods")),
	}
	o.Own, o.OwnNodes = o.Pods, o.Nodes
	return o
}

// make makes a change, and returns what was predicted, and what came of it.
func (a *actual) make(change string) (predicted, came string, f Forecast) {
	GinkgoHelper()
	was := map[string]bool{}
	for _, m := range a.objects().Machines {
		was[m.Name] = true
	}
	f, _ = told(a.objects(), change)
	raw, err := yaml.YAMLToJSON([]byte(change))
	Expect(err).NotTo(HaveOccurred())
	world.Patch(a.deployments(), "p", "%s", raw)
	a.settle()
	return lines(f.End.Pools[0]), lines(a.end(was)), f
}

// end is what there is, in the words of a prediction.
func (a *actual) end(was map[string]bool) (e PoolEnd) {
	o := a.objects()
	d := o.Deployments[0]
	e.Replicas, e.Applied = int(d.Spec.Replicas), pools.AppliedOf(d, d.Spec.Replicas).Excess
	for _, c := range d.Status.Conditions {
		if c.Type == api.ReserveReady {
			e.Reason, e.Message = c.Reason, c.Message
		}
	}
	for _, m := range o.Machines {
		switch inReserve := pools.Marked(m); {
		case !was[m.Name] && inReserve:
			e.New.Reserve++
		case !was[m.Name]:
			e.New.Serve++
		case inReserve:
			e.Reserve = append(e.Reserve, m.Name)
		default:
			e.Serve = append(e.Serve, m.Name)
		}
		delete(was, m.Name)
	}
	e.Leave = slices.Sorted(maps.Keys(was))
	return e
}

// lines are an end in words.
func lines(e PoolEnd) string {
	return fmt.Sprintf("R%d A%d, %s: %s\nserve %s\nreserve %s\nleave %s\nnew %d+%d", e.Replicas, e.Applied, e.Reason, e.Message,
		strings.Join(e.Serve, " "), strings.Join(e.Reserve, " "), strings.Join(e.Leave, " "), e.New.Serve, e.New.Reserve)
}

// drawn is a MachineDeployment at random.
func drawn(r *rand.Rand) func(*api.MachineDeployment) {
	return func(d *api.MachineDeployment) {
		if surge, unavailable := r.IntN(3), r.IntN(2); r.IntN(5) == 0 {
			d.Spec.Strategy = mcm.MachineDeploymentStrategy{Type: mcm.RecreateMachineDeploymentStrategyType}
		} else {
			d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt(surge)), new(intstr.FromInt(unavailable))
		}
		switch r.IntN(3) {
		case 0:
			d.Spec.ExcessReplicas = new(int32(r.IntN(4)))
		case 1:
			d.Annotations[api.BoundsAnnotation] = boundsText(r)
		}
	}
}

func boundsText(r *rand.Rand) string { return fmt.Sprintf("0:%d:%d", 3+r.IntN(5), r.IntN(4)) }

// drawChange returns a change of a MachineDeployment at random.
func drawChange(r *rand.Rand, o Objects) string {
	d := o.Deployments[0]
	annotate := func(fields string, annotations ...string) string {
		return patched("MachineDeployment", "p", "metadata: {name: p, annotations: {"+strings.Join(annotations, ", ")+"}}\nspec: "+fields)
	}
	switch kind := r.IntN(8); {
	case kind == 0 && len(o.Machines) > 0:
		now := o.At.UTC().Format(time.RFC3339)
		return annotate(fmt.Sprintf("{replicas: %d}", max(0, d.Spec.Replicas-int32(r.IntN(2)))),
			fmt.Sprintf("node.machine.sapcloud.io/trigger-deletion-by-mcm: %q", o.Machines[r.IntN(len(o.Machines))].Name+"~"+now),
			fmt.Sprintf("machine.sapcloud.io/last-deployment-replica-change-by-scaler-time: %q", now))
	case kind == 1:
		return annotate("{}", fmt.Sprintf("%s: %q", api.BoundsAnnotation, boundsText(r)))
	case kind == 2:
		return annotate("{}", fmt.Sprintf("%s: %q", api.DrainReserveAnnotation, []string{"true", "false"}[r.IntN(2)]))
	case kind == 3:
		return annotate(fmt.Sprintf("{excessReplicas: %d}", r.IntN(4)))
	case kind == 4:
		return annotate(fmt.Sprintf("{replicas: %d, excessReplicas: %d}", r.IntN(5), r.IntN(4)))
	case kind == 5:
		return annotate(fmt.Sprintf("{paused: %v, template: {spec: {class: {name: %q}}}}", r.IntN(4) == 0, []string{"a", "b", "c"}[r.IntN(3)]))
	case kind == 6 && r.IntN(2) == 0:
		return annotate("{paused: false, rollbackTo: {revision: 0}}")
	case kind == 6:
		return annotate(fmt.Sprintf("{paused: false, replicas: %d, template: {spec: {class: {name: %q}}}}", r.IntN(5), []string{"a", "b", "c"}[r.IntN(3)]))
	}
	return annotate(fmt.Sprintf("{replicas: %d}", r.IntN(6)))
}

var _ = Describe("A forecast, beside the controller on a simulated cluster,", func() {
	// isAtRest expects that what the controller has left is predicted to stay.
	isAtRest := func(a *actual) {
		GinkgoHelper()
		f, text := told(a.objects(), "")
		Expect(f.Plans[0]).To(And(HaveField("State", Not(Equal(Moving))), HaveField("Steps", BeEmpty())), text)
		Expect(text).To(HaveSuffix("Nothing changes.\n"))
	}

	It("comes true for random changes, and what the controller has left at rest is at rest", func() {
		storm.Seeds(suite, 15, func(seed uint64) {
			r := rand.New(rand.NewPCG(seed, 1))
			playActual(seed, int32(1+r.IntN(4)), drawn(r), func(a *actual) {
				for range 4 {
					a.work(r.IntN(5))
					isAtRest(a)
					change := drawChange(r, a.objects())
					predicted, came, f := a.make(change)
					Expect(f.End.Rest).To(BeTrue(), change)
					Expect(predicted).To(Equal(came), change)
				}
			})
		})
	})

	DescribeTable("says that what it has left at rest is at rest", func(replicas, pods int, change func(*api.MachineDeployment)) {
		storm.Bubble(suite, func() {
			playActual(1, int32(replicas), change, func(a *actual) {
				a.work(pods)
				f, text := told(a.objects(), "")
				Expect(f.Plans).To(ConsistOf(HaveField("State", AtRest)))
				Expect(text).To(Equal("1 object is at rest.\nNothing changes.\n"))
			})
		})
	},
		Entry("with bounds, and a pod on one of two machines", 2, 1, bounds("1:5:1")),
		Entry("with a reserve", 2, 2, func(d *api.MachineDeployment) { d.Spec.ExcessReplicas = new(int32(2)) }),
		Entry("without one", 3, 1, func(*api.MachineDeployment) {}),
		Entry("without machines", 0, 0, func(*api.MachineDeployment) {}),
	)

	It("predicts that the machines of a MachineDeployment go that is being deleted, and then it does", func() {
		storm.Bubble(suite, func() {
			playActual(1, 2, func(d *api.MachineDeployment) { d.Spec.ExcessReplicas = new(int32(1)) }, func(a *actual) {
				a.work(2)
				o := a.objects()
				world.Delete(a.deployments(), "p")
				o.Deployments = a.objects().Deployments
				f, text := told(o, "")
				Expect(text).To(HavePrefix("MachineDeployment default/p: moving (it is being deleted)\n"))
				Expect(f.End.Rest).To(BeTrue())
				Expect(f.End.Pools).To(ConsistOf(And(HaveField("Leave", HaveLen(3)), HaveField("Serve", BeEmpty()), HaveField("Reserve", BeEmpty()), HaveField("Same", false))))
				a.settle()
				Expect(a.objects().Deployments).To(BeEmpty())
				Expect(a.objects().Machines).To(BeEmpty())
			})
		})
	})
})
