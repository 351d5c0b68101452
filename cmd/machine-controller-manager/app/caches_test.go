// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	mcmclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/internal/reachability"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// everyKind is what the two simulated clusters serve.
var everyKind = slices.Concat(sim.Core, sim.Machine, sim.Workloads, sim.Shapes, []sim.Resource{
	{Group: "storage.k8s.io", Version: "v1", Name: "storageclasses", Kind: "StorageClass"},
	{Group: "storage.k8s.io", Version: "v1", Name: "csidrivers", Kind: "CSIDriver"},
})

var _ = Describe("A process with all controllers", Serial, func() {
	var r *binary
	var servers [2]*sim.Server // the control cluster and the target cluster
	var machines, target func() map[string]int
	run := func(arguments ...string) {
		GinkgoHelper()
		if servers[0] == nil {
			servers[0] = sim.New(sim.Options{Resources: everyKind})
		}
		servers[1] = sim.New(sim.Options{Resources: everyKind})
		machines, target = running.Watches(servers[0]), running.Watches(servers[1])
		r = start(servers[0], append(arguments, "--control-kubeconfig="+running.Kubeconfig(servers[0], "mcm"), "--target-kubeconfig="+running.Kubeconfig(servers[1], "mcm"),
			fmt.Sprint("--autoscaler-listen-address=127.0.0.1:", running.FreePort()))...)
		Eventually(r.Status("/readyz"), eventually).Should(Equal(http.StatusOK))
	}
	BeforeEach(func() { servers = [2]*sim.Server{} })
	AfterEach(func() {
		r.Stop()
		Eventually(r.Ended, eventually).Should(Receive(BeNil()))
	})
	onlyNodes := map[string]int{"nodes": 1}
	all := map[string]int{
		"pods": 1, "nodes": 1, "persistentvolumeclaims": 1, "persistentvolumes": 1, "poddisruptionbudgets": 1,
		"daemonsets": 1, "replicasets": 1, "storageclasses": 1, "csidrivers": 1,
	}

	It("reads only Nodes of the target cluster until a MachineDeployment wants a reserve, then each kind once", func() {
		run()
		r.create(fixture.MachineDeployment("stock", 2))
		Eventually(r.machines, eventually).Should(Equal(2))
		Eventually(target, eventually).Should(Equal(onlyNodes))
		Consistently(target, time.Second).Should(Equal(onlyNodes))

		wish := fixture.MachineDeployment("pool", 1)
		wish.Annotations = map[string]string{api.BoundsAnnotation: "1:5:2"}
		r.create(wish)
		Eventually(target, eventually).Should(Equal(all))
		Eventually(r.machines, eventually).Should(Equal(5), "two of the reserve")
		Expect(machines()).To(And(HaveKeyWithValue("machines", 1), HaveKeyWithValue("machinesets", 1), HaveKeyWithValue("machinedeployments", 1)))
	})

	It("reads Jobs once a pod of one has waited", func() {
		run()
		wish := fixture.MachineDeployment("pool", 1)
		wish.Annotations = map[string]string{api.BoundsAnnotation: "1:5:2"}
		r.create(wish)
		Eventually(target, eventually).Should(Equal(all))
		Eventually(r.machines, eventually).Should(Equal(3))
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", UID: "j"}}
		pods := kubernetes.NewForConfigOrDie(servers[1].ConfigFor("user")).CoreV1().Pods("default")
		pod, err := pods.Create(context.Background(), fixture.Pod("p", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
			p.Spec.SchedulerName = "default-scheduler"
		}), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		_, err = pods.UpdateStatus(context.Background(), pod, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(target, eventually).Should(HaveKeyWithValue("jobs", 1))
	})

	DescribeTable("reads pods where there is, and release is not enabled,", func(create func(ctx context.Context)) {
		run("--instant-release=false")
		Eventually(target, eventually).Should(Equal(onlyNodes))
		Consistently(target, time.Second).Should(Equal(onlyNodes))
		create(context.Background())
		Eventually(target, eventually).Should(HaveKeyWithValue("pods", 1))
	},
		Entry("a wish", func(context.Context) {
			wish := fixture.MachineDeployment("pool", 1)
			wish.Annotations = map[string]string{api.PoolExcessAnnotation: "1"}
			r.create(wish)
		}),
		Entry("a wish of one that had none when it came", func(ctx context.Context) {
			r.create(fixture.MachineDeployment("pool", 1))
			Eventually(r.machines, eventually).Should(Equal(1))
			world.Patch(mcmclient.NewForConfigOrDie(servers[0].ConfigFor("user")).MachineV1alpha1().MachineDeployments(fixture.Namespace), "pool", `{"metadata":{"annotations":{%q:%q}}}`, api.BalanceAnnotation, api.BalanceContinuous)
		}),
		Entry("a Machine that is left in reserve", func(ctx context.Context) {
			m := fixture.Machine("left", func(m *mcm.Machine) { m.Annotations = map[string]string{api.ReserveAnnotation: "2026-01-01T00:00:00Z"} })
			_, err := mcmclient.NewForConfigOrDie(servers[0].ConfigFor("user")).MachineV1alpha1().Machines(m.Namespace).Create(ctx, m, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}),
		Entry("a Node that is left with the taint", func(ctx context.Context) {
			node := fixture.Node("left", func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}
			})
			_, err := kubernetes.NewForConfigOrDie(servers[1].ConfigFor("user")).CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}),
	)

	DescribeTable("reads pods in a Gardener's cluster", func(workers sim.Trouble, want map[string]int) {
		servers[0] = sim.New(sim.Options{Resources: slices.Concat(everyKind, []sim.Resource{
			{Group: "extensions.gardener.cloud", Version: "v1alpha1", Name: "workers", Kind: "Worker", Namespaced: true},
			{Group: "extensions.gardener.cloud", Version: "v1alpha1", Name: "clusters", Kind: "Cluster"},
		})})
		servers[0].Trouble("workers", workers)
		run()
		Eventually(target, eventually).Should(Equal(want))
		Consistently(target, 2*time.Second).Should(Equal(want))
	},
		Entry("where Workers can be read, which have bounds for all", sim.Trouble{}, all),
		Entry("otherwise only where there is a wish", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, onlyNodes),
	)

	It("reads each kind from the beginning where flags concern every MachineDeployment", func() {
		run("--balance-mode=ScaleUp")
		Eventually(target, eventually).Should(Equal(all))
	})
})

var _ = DescribeTable("A reserve, balance, or what is left of them shows in", func(item any, shows bool) {
	Expect(concerns(item)).To(Equal(shows))
},
	Entry("no stock MachineDeployment", &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"deployment.kubernetes.io/revision": "1"}}, Status: conditions(mcm.MachineDeploymentAvailable, mcm.MachineDeploymentProgressing, mcm.MachineDeploymentReplicaFailure, mcm.MachineDeploymentFrozen)}, false),
	Entry("an excess, also of 0", &api.MachineDeployment{Spec: api.MachineDeploymentSpec{ExcessReplicas: new(int32)}}, true),
	Entry("a witness of an excess", &api.MachineDeployment{Spec: api.MachineDeploymentSpec{ReserveWitness: true}}, true),
	Entry("an annotation", &api.MachineDeployment{ObjectMeta: annotated(api.BalanceAnnotation)}, true),
	Entry("an annotation of a Gardener's worker pool", gardeners(api.PoolExcessAnnotation), true),
	Entry("a status", &api.MachineDeployment{Status: api.MachineDeploymentStatus{ExcessReplicas: 1}}, true),
	Entry("a status of ready machines alone", &api.MachineDeployment{Status: api.MachineDeploymentStatus{ReadyExcessReplicas: 1}}, true),
	Entry("a condition", &api.MachineDeployment{Status: conditions(mcm.MachineDeploymentAvailable, "ExcessAvailable")}, true),
	Entry("no stock Machine", &mcm.Machine{ObjectMeta: annotated("machinepriority.machine.sapcloud.io")}, false),
	Entry("a Machine in reserve", &mcm.Machine{ObjectMeta: annotated(api.ReserveAnnotation)}, true),
	Entry("a Machine whose Node is to have the taint", &mcm.Machine{Spec: mcm.MachineSpec{NodeTemplateSpec: mcm.NodeTemplateSpec{Spec: corev1.NodeSpec{Taints: reserveTaint}}}}, true),
	Entry("no stock Node", &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeUnschedulable}}}}, false),
	Entry("a Node with the taint", &corev1.Node{Spec: corev1.NodeSpec{Taints: reserveTaint}}, true),
	Entry("a Node with the annotation", &corev1.Node{ObjectMeta: annotated(api.ReserveAnnotation)}, true),
)

var reserveTaint = []corev1.Taint{{Key: api.ReserveTaintKey}}

func annotated(key string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Annotations: map[string]string{key: "1"}}
}

func gardeners(key string) *api.MachineDeployment {
	d := &api.MachineDeployment{}
	d.Spec.Template.Spec.NodeTemplateSpec.ObjectMeta = annotated(key)
	return d
}

func conditions(types ...mcm.MachineDeploymentConditionType) (s api.MachineDeploymentStatus) {
	for _, t := range types {
		s.Conditions = append(s.Conditions, mcm.MachineDeploymentCondition{Type: t})
	}
	return s
}

// leader runs controllers as the process that leads does. It ends where the storage was restored.
func leader(controllers ...string) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		p, err := processOf(config, controllers)
		if err != nil {
			return err
		}
		if err = p.runLeader(ctx); errors.Is(err, reachability.ErrRestored) {
			return nil
		}
		return err
	}
}

func processOf(config *rest.Config, controllers []string) (p *process, err error) {
	p = &process{
		options: parsed("--namespace=" + fixture.Namespace), registry: prometheus.NewRegistry(), rights: access.New(clock.RealClock{}), Process: daemon.Process{Recorder: &record.FakeRecorder{}},
		control: storm.Control(config), target: storm.Target(config),
	}
	p.control.Timeout, p.target.Timeout = time.Minute, time.Minute
	if p.controllers, err = pickControllers(controllers); err != nil {
		return nil, err
	}
	if p.core, err = connect.Core(p.control); err != nil {
		return nil, err
	}
	if p.clusters, err = p.newClusters(); err != nil {
		return nil, err
	}
	p.caches, err = p.newCaches()
	return p, err
}

// requestedIn is what Reserves request of each MachineDeployment.
func requestedIn(w *storm.World) map[string]string {
	all := map[string]string{}
	for _, d := range world.List[api.MachineDeployment](w, api.SchemeGroupVersion.WithResource("machinedeployments")) {
		all[d.Name] = d.Annotations[api.RequestedExcessAnnotation]
	}
	return all
}

var _ = Describe("Controllers that start with their first object", func() {
	It("follow each that comes and goes, whatever fails while they start", func() {
		storm.Seeds(suite, 8, func(seed uint64) {
			w := storm.NewApart(sim.Options{Seed: seed, Resources: bufferKinds})
			defer w.End()
			random := rand.New(rand.NewPCG(seed, 5))
			p := w.Start("ours", leader("reserves", "capacitybuffer"))
			ours := buffered(w.ConfigFor("user"))
			w.Storm(random, p)
			other := &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: fixture.Namespace}}
			world.Create(ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), other)
			wanted := map[string]string{"pool": "", "other": ""}
			for range 3 + random.IntN(4) {
				time.Sleep(time.Duration(random.IntN(90)) * time.Second)
				if random.IntN(2) == 0 {
					p.CrashFor(time.Duration(random.IntN(120)) * time.Second)
				}
				change(ours, random.IntN(2) == 0, wanted)
			}
			w.Calm()
			Expect(w.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
			Expect(requestedIn(w)).To(Equal(wanted))
			before := len(w.Writes())
			time.Sleep(time.Hour)
			Expect(w.Writes()[before:]).To(BeEmpty())
		})
	})
})

var _ = It("A right that one controller lacks is named on MachineDeployments by another", func() {
	storm.Bubble(suite, func() {
		w := storm.NewApart(sim.Options{Seed: 1, Resources: askedKinds})
		defer w.End()
		deployments := userOf(w).ours.MachineV1alpha1().MachineDeployments(fixture.Namespace)
		world.Create(deployments, world.MachineDeployment("pool", 1, func(d *api.MachineDeployment) { d.Annotations[api.BoundsAnnotation] = "1:9:2" }))
		w.Trouble("reserves", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "ours")
		w.Start("ours", leader(reservesName, balanceName))
		time.Sleep(time.Minute)
		d, err := deployments.Get(context.Background(), "pool", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Status.Conditions).To(ContainElement(And(HaveField("Type", BeEquivalentTo("RightsGranted")), HaveField("Message", ContainSubstring("reserves")))))
	})
})

var _ = Describe("A reserve", func() {
	It("begins as soon as it is known where it is to be counted", func() {
		storm.Bubble(suite, func() {
			w := storm.NewApart(sim.Options{Seed: 1, Resources: everyKind})
			defer w.End()
			const asked = 20 * time.Second
			w.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.User == "ours" && r.Resource == "" {
					return asked, 0
				}
				return 0, 0
			})
			_, ours := world.Clients(w.ConfigFor("user"))
			world.Create(ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), world.MachineDeployment("pool", 1, func(d *api.MachineDeployment) {
				d.Annotations[api.BoundsAnnotation] = "1:5:1"
			}))
			machines := func() int { return len(w.Objects(mcm.SchemeGroupVersion.WithResource("machines"))) }
			w.Start("ours", leader("mcm"))
			time.Sleep(2*asked - 5*time.Second)
			Expect(machines()).To(Equal(1), "the machine API is served, and it is not known yet whether the cluster is a Gardener's")
			time.Sleep(10 * time.Second)
			Expect(machines()).To(Equal(2))
		})
	})
})

var _ = Describe("Pods", func() {
	It("are read from the first machine in reserve on, and helped, whatever fails meanwhile", func() {
		kinds := slices.Concat(bufferKinds, []sim.Resource{
			{Group: "storage.k8s.io", Version: "v1", Name: "storageclasses", Kind: "StorageClass", Type: &storagev1.StorageClass{}},
			{Group: "storage.k8s.io", Version: "v1", Name: "csidrivers", Kind: "CSIDriver", Type: &storagev1.CSIDriver{}},
		})
		const spares = 6
		storm.Seeds(suite, 12, func(seed uint64) {
			w := storm.NewApart(sim.Options{Seed: seed, Resources: kinds})
			defer w.End()
			random := rand.New(rand.NewPCG(seed, 6))
			p := w.Start("ours", leader("release"))
			u := userOf(w)
			u.pool()
			u.machine("pool-1", false, fixture.Pod("first", full))
			for i := range spares {
				u.pod(fixture.Pod(fmt.Sprint("waits-", i), full, world.MarkUnschedulable))
			}
			w.Storm(random, p)
			for i := range spares {
				time.Sleep(time.Duration(random.IntN(90)) * time.Second)
				if random.IntN(2) == 0 {
					p.CrashFor(time.Duration(random.IntN(60)) * time.Second)
				}
				u.machine(fmt.Sprint("spare-", i), true)
			}
			w.Calm()
			Expect(w.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
			d, err := u.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.Replicas).To(BeEquivalentTo(1 + spares))
		})
	})
})

// user creates objects of both clusters.
type user struct {
	core kubernetes.Interface
	ours versioned.Interface
	set  *mcm.MachineSet
}

func userOf(w *storm.World) *user {
	core, ours := world.Clients(w.ConfigFor("user"))
	return &user{core: core, ours: ours}
}

// pool creates a MachineDeployment with one replica.
func (u *user) pool() {
	GinkgoHelper()
	u.set = world.CreatePool(u.ours.MachineV1alpha1(), world.MachineDeployment("pool", 1), "pool-set")
}

// machine creates a machine that runs, with its Node and pods. In reserve, it is the first one there.
func (u *user) machine(name string, inReserve bool, pods ...*corev1.Pod) {
	GinkgoHelper()
	m, n := world.NewMachine("pool", name, u.set, inReserve), fixture.Node(name)
	m.Labels[mcm.NodeLabelKey], m.Spec.ProviderID, m.Status.CurrentStatus.Phase = name, n.Spec.ProviderID, mcm.MachineRunning
	if inReserve {
		n.Spec.Taints = []corev1.Taint{{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}
		world.Patch(u.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), "pool",
			`{"metadata":{"annotations":{%q:"1:9",%q:"6"}},"spec":{"excessReplicas":6}}`, api.BoundsAnnotation, api.AppliedExcessAnnotation)
	}
	world.Create(u.core.CoreV1().Nodes(), n)
	for _, p := range pods {
		p.Spec.NodeName = name
		u.pod(p)
	}
	world.CreateWithStatus(u.ours.MachineV1alpha1().Machines(fixture.Namespace), m)
}

func (u *user) pod(p *corev1.Pod) {
	GinkgoHelper()
	world.CreateWithStatus(u.core.CoreV1().Pods(fixture.Namespace), p)
}

func full(p *corev1.Pod) {
	p.Spec.SchedulerName = corev1.DefaultSchedulerName
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
}

// change creates the Reserve or the CapacityBuffer, or deletes it if it exists, and notes what is
// requested then.
func change(ours versioned.Interface, reserve bool, wanted map[string]string) {
	GinkgoHelper()
	reserves, buffers := ours.AutoscalingV1alpha1().Reserves(fixture.Namespace), ours.CapacityBufferV1beta1().CapacityBuffers("shop")
	switch {
	case reserve && wanted["other"] == "":
		r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "queue", Namespace: fixture.Namespace}}
		r.Spec.Pools.Names, r.Spec.Replicas = []string{"other"}, 3
		world.Create(reserves, r)
		wanted["other"] = "queue=3"
	case reserve:
		world.Delete(reserves, "queue")
		wanted["other"] = ""
	case wanted["pool"] == "":
		world.Create(buffers, bufferOf(v1beta1.StrategyReserved))
		wanted["pool"] = "capacity-buffers.pool=2"
	default:
		world.Delete(buffers, "web")
		wanted["pool"] = ""
	}
}
