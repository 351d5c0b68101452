// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"context"
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/similar"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// scene is a MachineDeployment whose growth is to be split, with one machine on which nothing runs.
type scene struct {
	Objects
	d       *v1alpha1.MachineDeployment
	set     *mcm.MachineSet
	machine *mcm.Machine
	node    *corev1.Node
}

func newScene() *scene {
	s := &scene{d: NewMember("a", 2, ScaleUp, Applied(1)).Object}
	s.d.UID, s.d.Spec.Template.Spec.Class.Name = "a", "large"
	s.set = s.add("new")
	s.machine, s.node = s.run(s.set, "m")
	for class, cpu := range map[string]string{"large": "4", "huge": "16"} {
		s.Classes = append(s.Classes, fixture.MachineClass(class, func(k *mcm.MachineClass) {
			k.NodeTemplate = &mcm.NodeTemplate{Capacity: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
		}))
	}
	return s
}

// add makes a MachineSet by the template of now.
func (s *scene) add(name string) *mcm.MachineSet {
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace, UID: types.UID(name), OwnerReferences: world.OwnedBy("MachineDeployment", s.d)}}
	set.Spec.Template = s.d.Spec.Template
	s.Sets = append(s.Sets, set)
	return set
}

// run makes a Machine of a MachineSet with its Node.
func (s *scene) run(set *mcm.MachineSet, name string) (*mcm.Machine, *corev1.Node) {
	m := NewMachine(name).Object
	m.Namespace, m.OwnerReferences, m.Spec.ProviderID = fixture.Namespace, world.OwnedBy("MachineSet", set), "aws:///here/"+name
	n := fixture.Node(name, func(n *corev1.Node) {
		n.Spec.ProviderID = "aws:///here-1/" + name
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("3")}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(Born)}}
	})
	s.Machines, s.Nodes = append(s.Machines, m), append(s.Nodes, n)
	return m, n
}

func (s *scene) pod(name string, changes ...func(*corev1.Pod)) {
	s.Pods = append(s.Pods, StoredPod(name, s.node.Name, changes...))
}

// view as the controller sees it.
func (s *scene) view() plan.View {
	GinkgoHelper()
	o := s.Objects
	o.Deployments, o.Nodes = shown(plan.Member{Object: s.d}).Deployments, nil
	for _, n := range s.Nodes {
		slim, err := target.Strip(n)
		Expect(err).NotTo(HaveOccurred())
		o.Nodes = append(o.Nodes, slim.(*corev1.Node))
	}
	_, v, _ := watched(o, true)
	Expect(v.Members).To(HaveLen(1))
	return v
}

func (s *scene) member() plan.Member {
	GinkgoHelper()
	return s.view().Members[0]
}

func newPreview() *Preview {
	GinkgoHelper()
	p, err := NewPreview(fixture.Namespace, NewSettings(), true)
	Expect(err).NotTo(HaveOccurred())
	return p
}

// offer returns the number of CPUs that a new machine has for pods according to a preview.
func (s *scene) offer(p *Preview, now time.Time) string {
	GinkgoHelper()
	o := s.Objects
	o.Deployments = shown(plan.Member{Object: s.d}).Deployments
	Expect(p.SetObjects(o, now)).To(Succeed())
	v, _ := p.Plan()
	if v.Members[0].Template == nil {
		return "unknown"
	}
	return v.Members[0].Template.Allocatable.Cpu().String()
}

var _ = Describe("What is observed", func() {
	of := func(kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.OwnerReferences[0].Kind = kind }
	}

	It("is a machine that is free", func() {
		m := newScene().member()
		Expect(m.NoSet).To(BeFalse())
		Expect(m.Machines).To(HaveLen(1))
		Expect(m.Machines[0].Busy()).To(BeFalse())
		Expect(m.Template.Allocatable).To(HaveKeyWithValue(corev1.ResourceCPU, resource.MustParse("3")))
	})

	It("is no Machine of a former MachineDeployment, or MachineSet, of the name", func() {
		s := newScene()
		s.set.OwnerReferences[0].UID = "former"
		Expect(s.member().Machines).To(BeEmpty())
		Expect(s.member().NoSet).To(BeTrue())
		s = newScene()
		s.machine.OwnerReferences[0].UID = "former"
		Expect(s.member().Machines).To(BeEmpty())
	})

	It("is a pod that has to run elsewhere if its machine goes", func() {
		s := newScene()
		s.pod("app")
		s.pod("agent", of("DaemonSet"))
		s.pod("static", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })
		s.pod("finished", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		m := s.member().Machines[0]
		Expect(m.Workload).To(HaveLen(1))
		Expect(m.Workload[0].Object.Name).To(Equal("app"))
	})

	It("is a pod that waits, unless it is being deleted or others make room for it", func() {
		s := newScene()
		waits := func(name string, changes ...func(*corev1.Pod)) {
			s.pod(name, append([]func(*corev1.Pod){func(p *corev1.Pod) { p.Spec.NodeName = "" }, world.MarkUnschedulable}, changes...)...)
		}
		waits("waits")
		waits("nominated", func(p *corev1.Pod) { p.Status.NominatedNodeName = s.node.Name })
		waits("deleted", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: Noon} })
		v := s.view()
		Expect(v.Waiting).To(HaveLen(1))
		Expect(v.Waiting[0].Object.Name).To(Equal("waits"))
	})

	It("is not changed by what is expected of a new machine", func() {
		s := newScene()
		before := s.node.DeepCopy()
		Expect(s.offer(newPreview(), Noon)).To(Equal("3"))
		Expect(s.node).To(Equal(before))
	})

	It("is of a Node each pod that has not finished", func() {
		s := newScene()
		s.pod("app")
		s.pod("agent", of("DaemonSet"))
		s.pod("finished", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		v := s.view()
		Expect(v.Nodes).To(HaveLen(1))
		Expect(v.Nodes[0].Pods).To(HaveLen(2))
	})

	It("is not what runs on a Node of the name that is another machine's, and the machine counts as busy", func() {
		s := newScene()
		s.node.Spec.ProviderID = "aws:///here-1/successor"
		s.pod("app")
		m := s.member().Machines[0]
		Expect(m.Workload).To(BeEmpty())
		Expect(m.Busy()).To(BeTrue())
	})

	It("is no reserve where workload runs, unless it tolerates the reserve's taint", func() {
		reserve := func(pods ...func(*corev1.Pod)) bool {
			s := newScene()
			s.machine.Annotations[v1alpha1.ReserveAnnotation] = v1alpha1.Reserve{Since: Born}.String()
			for _, change := range pods {
				s.pod("app", change)
			}
			return s.member().Machines[0].Reserve()
		}
		tolerant := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
		// manyClaims is more than is kept of a pod.
		manyClaims := func(p *corev1.Pod) {
			tolerant(p)
			for range 1000 {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}})
			}
		}
		Expect(reserve()).To(BeTrue())
		Expect(reserve(of("ReplicaSet"))).To(BeFalse())
		Expect(reserve(tolerant)).To(BeTrue())
		Expect(reserve(manyClaims)).To(BeTrue())
	})

	DescribeTable("is how many Nodes of the cluster are not ready", func(hasTarget bool, ready, not int, known bool, nodes, unready int) {
		s := newScene()
		o := s.Objects
		o.Deployments, o.Nodes = shown(plan.Member{Object: s.d}).Deployments, nil
		for i := range ready + not {
			o.Nodes = append(o.Nodes, fixture.Node(fmt.Sprint("n", i), func(n *corev1.Node) {
				if i >= ready {
					n.Status.Conditions[0].Status = corev1.ConditionFalse
				}
			}))
		}
		_, v, _ := watched(o, hasTarget)
		Expect([]any{v.NodesKnown, v.NodeCount, v.UnreadyCount}).To(Equal([]any{known, nodes, unready}))
	},
		Entry("if some are not", true, 2, 3, true, 5, 3),
		Entry("which are not counted if all are ready", true, 2, 0, true, 0, 0),
		Entry("unless there is no target cluster", false, 0, 0, false, 0, 0),
	)

	It("is a rollout while another MachineSet has machines that stay, whatever the status of the set says", func() {
		s := newScene()
		s.set.Spec.Replicas = 1
		old := s.add("old")
		old.Spec.Template.Spec.Class.Name, old.Status.Replicas = "huge", 1
		last, _ := s.run(old, "last")
		last.DeletionTimestamp = &metav1.Time{Time: Noon}
		Expect(s.member().Rollout.Spread).To(BeFalse(), "its last machine goes")
		last.DeletionTimestamp, old.Status.Replicas = nil, 0
		Expect(s.member().Rollout.Spread).To(BeTrue())
	})

	It("is not what a machine is like that has just left the reserve, however long nothing happened before", func() {
		s := newScene()
		preview := newPreview()
		s.machine.Annotations[v1alpha1.ReserveAnnotation] = v1alpha1.Reserve{Since: Born}.String()
		Expect(s.offer(preview, Noon)).To(Equal("4"), "by its class")
		delete(s.machine.Annotations, v1alpha1.ReserveAnnotation)
		released := Noon.Add(time.Hour)
		Expect(s.offer(preview, released)).To(Equal("4"))
		Expect(s.offer(preview, released.Add(similar.Settling-1))).To(Equal("4"))
		Expect(s.offer(preview, released.Add(similar.Settling))).To(Equal("3"), "by its Node")
	})

	It("is not what a machine is like that left the reserve while no decision depended on machines", func() {
		s := newScene()
		preview := newPreview()
		s.machine.Annotations[v1alpha1.ReserveAnnotation] = v1alpha1.Reserve{Since: Born}.String()
		wishes := s.d.Annotations
		s.d.Annotations = nil
		Expect(s.offer(preview, Noon)).To(Equal("unknown"), "because no decision depends on machines")
		delete(s.machine.Annotations, v1alpha1.ReserveAnnotation)
		s.d.Annotations = wishes
		wished := Noon.Add(time.Hour)
		Expect(s.offer(preview, wished)).To(Equal("4"))
		Expect(s.offer(preview, wished.Add(similar.Settling-1))).To(Equal("4"))
		Expect(s.offer(preview, wished.Add(similar.Settling))).To(Equal("3"))
	})

	It("is nothing of a MachineDeployment that had the name before", func() {
		s := newScene()
		preview := newPreview()
		Expect(s.offer(preview, Noon)).To(Equal("3"), "by its Node")
		Expect(preview.SetObjects(Objects{}, Noon.Add(time.Second))).To(Succeed())
		preview.Plan()
		s.Nodes = nil
		Expect(s.offer(preview, Noon.Add(time.Minute))).To(Equal("4"), "by its class")
	})

	It("is what machines of the template of now are like, not those of an older one", func() {
		s := newScene()
		s.d.Spec.Template.Spec.Class.Name = "huge"
		Expect(s.member().Template.Capacity).To(HaveKeyWithValue(corev1.ResourceCPU, resource.MustParse("16")))
	})
})

// deployUndescribed makes a MachineDeployment whose MachineClass does not describe its machines.
func (c *cluster) deployUndescribed(m plan.Member) {
	GinkgoHelper()
	c.deploy(m)
	world.Patch(c.ours.MachineV1alpha1().MachineClasses(ns), m.Object.Name, `{"nodeTemplate":null}`)
}

var _ = Describe("Until Nodes show what a machine offers", func() {
	It("an excess in resources is known a minute after the process starts, though nothing else happens", func() {
		play(func(c *cluster) {
			c.deployUndescribed(NewMember("a", 1, Excess("cpu=4")))
			time.Sleep(5 * time.Minute)
			c.Start("balance", controller())
			c.settle()
			Expect(c.condition("a", plan.ConditionShare)).To(Equal("True Spread"))
		})
	})

	It("an excess in a device is known once a Node offers the device, though nothing else happens", func() {
		play(func(c *cluster) {
			c.deploy(NewMember("a", 1, Labelled("p"), Excess("example.org/device=2")))
			c.Start("balance", controller())
			c.settle()
			Expect(c.condition("a", plan.ConditionShare)).To(Equal("False ExcessUnknown"))
			nodes, err := c.core.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			for _, n := range nodes.Items {
				_, err := c.core.CoreV1().Nodes().Patch(context.Background(), n.Name, types.MergePatchType, []byte(`{"status":{"allocatable":{"example.org/device":"1"}}}`), metav1.PatchOptions{}, "status")
				Expect(err).NotTo(HaveOccurred())
			}
			time.Sleep(time.Minute)
			Expect(c.condition("a", plan.ConditionShare)).To(Equal("True Spread"))
			Expect(c.annotations(v1alpha1.ShareAnnotation, "a")).To(Equal("2"))
		})
	})

	It("an excess in devices is known once a driver has published them, though nothing else happens", func() {
		play(func(c *cluster) {
			c.deploy(NewMember("a", 1, Labelled("p"), Excess("devices.gpu=3")))
			balance := c.Start("balance", controller())
			c.settle()
			Expect(c.condition("a", plan.ConditionShare)).To(Equal("False ExcessUnknown"))
			world.Create(c.core.ResourceV1().DeviceClasses(), &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
			nodes, err := c.core.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			node := nodes.Items[0].Name
			world.Create(c.core.ResourceV1().ResourceSlices(), &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourceapi.ResourceSliceSpec{
				Driver: "gpu.example.com", NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1}, Devices: []resourceapi.Device{{Name: "a"}, {Name: "b"}},
			}})
			time.Sleep(time.Minute)
			Expect(c.condition("a", plan.ConditionShare)).To(Equal("True Spread"))
			Expect(c.annotations(v1alpha1.ShareAnnotation, "a")).To(Equal("2"))
			c.settle()
			before := len(c.Writes())
			c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.Resource == "resourceslices" && r.Verb == "list" {
					return time.Second, time.Second
				}
				return time.Millisecond, time.Millisecond
			})
			balance.Crash()
			balance.Restart()
			time.Sleep(10 * time.Minute)
			Expect(c.wrote(before)).To(BeZero())
		})
	})

	It("shares of similar MachineDeployments stay where they are when the process starts again", func() {
		play(func(c *cluster) {
			c.deployUndescribed(NewMember("a", 2, Excess("3")))
			c.deployUndescribed(NewMember("b", 2))
			c.deployUndescribed(NewMember("c", 2))
			balance := c.Start("balance", controller())
			time.Sleep(10 * time.Minute)
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("1/1/1"))
			before := len(c.Writes())
			balance.Crash()
			balance.Restart()
			time.Sleep(10 * time.Minute)
			Expect(c.wrote(before)).To(BeZero())
		})
	})

	It("growth waits when the process starts again, and is split then", func() {
		play(func(c *cluster) {
			for _, name := range abc {
				c.deployUndescribed(NewMember(name, 2, ScaleUp))
			}
			balance := c.Start("balance", controller())
			time.Sleep(10 * time.Minute)
			balance.Crash()
			c.scale("a", 8)
			balance.Restart()
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("4/4/4"))
		})
	})

	It("a machine that is created for a move is not given up when the process starts again", func() {
		play(func(c *cluster) {
			c.deployUndescribed(NewMember("a", 3, Continuous))
			c.deployUndescribed(NewMember("b", 1, Continuous))
			balance := c.Start("balance", controller())
			time.Sleep(70 * time.Second)
			move := c.annotations(v1alpha1.MoveAnnotation, "b")
			Expect(move).To(ContainSubstring(`"from":"a"`))
			balance.Crash()
			balance.Restart()
			time.Sleep(10 * time.Second)
			Expect(c.annotations(v1alpha1.MoveAnnotation, "b")).To(Equal(move))
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("2/2"))
		})
	})

	It("shares of an excess in resources stay as they are when the process starts again, though MachineClasses describe larger machines", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Labelled("p"), Excess("cpu=12")}, 2, 2, 2)
			for _, name := range abc {
				world.Patch(c.ours.MachineV1alpha1().MachineClasses(ns), name, `{"nodeTemplate":{"capacity":{"cpu":"6"}}}`)
			}
			balance := c.Start("balance", controller())
			time.Sleep(10 * time.Minute)
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("1/1/1"))
			before := len(c.Writes())
			balance.Crash()
			balance.Restart()
			time.Sleep(10 * time.Minute)
			Expect(c.wrote(before)).To(BeZero())
		})
	})
})
