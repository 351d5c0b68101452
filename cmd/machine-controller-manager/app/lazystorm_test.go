// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
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
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

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
	for _, d := range world.List[machine.MachineDeployment](w, machine.SchemeGroupVersion.WithResource("machinedeployments")) {
		all[d.Name] = d.Annotations[machine.RequestedExcessAnnotation]
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
			other := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: fixture.Namespace}}
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
		n.Spec.Taints = []corev1.Taint{{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}
		world.Patch(u.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), "pool",
			`{"metadata":{"annotations":{%q:"1:9",%q:"6"}},"spec":{"excessReplicas":6}}`, machine.BoundsAnnotation, machine.AppliedExcessAnnotation)
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
