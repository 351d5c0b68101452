// SPDX-License-Identifier: Apache-2.0

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
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
		options: parsed("--namespace=" + fixture.Namespace), registry: prometheus.NewRegistry(), rights: access.New(clock.RealClock{}), recorder: &record.FakeRecorder{},
		control: storm.Control(config), target: storm.Target(config),
	}
	for _, config := range []*rest.Config{p.control, p.target} {
		config.QPS, config.Timeout = -1, requestTimeout
	}
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
	for _, d := range w.Objects(machine.SchemeGroupVersion.WithResource("machinedeployments")) {
		all[d.GetName()] = d.GetAnnotations()[machine.RequestedExcessAnnotation]
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
			_, err := ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(context.Background(), other, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
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
			u.machine("pool-1", "", fixture.Pod("first", full))
			for i := range spares {
				u.pod(fixture.Pod(fmt.Sprint("waits-", i), full, unschedulable))
			}
			w.Storm(random, p)
			for i := range spares {
				time.Sleep(time.Duration(random.IntN(90)) * time.Second)
				if random.IntN(2) == 0 {
					p.CrashFor(time.Duration(random.IntN(60)) * time.Second)
				}
				u.machine(fmt.Sprint("spare-", i), machine.Reserve{Since: time.Now().Truncate(time.Second)}.String())
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
	config := w.ConfigFor("user")
	return &user{core: kubernetes.NewForConfigOrDie(config), ours: versioned.NewForConfigOrDie(config)}
}

// pool creates a MachineDeployment with bounds and one replica.
func (u *user) pool() {
	GinkgoHelper()
	plain := fixture.MachineDeployment("pool", 1)
	d := &machine.MachineDeployment{ObjectMeta: plain.ObjectMeta, Spec: machine.MachineDeploymentSpec{StockMachineDeploymentSpec: plain.Spec}}
	d, err := u.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(context.Background(), d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	set, _ := fixture.Spares(d, 0, 0)
	set.Spec.Template = d.Spec.Template
	u.set, err = u.ours.MachineV1alpha1().MachineSets(fixture.Namespace).Create(context.Background(), set, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// machine creates a machine that runs, with its Node and pods. With a mark, it is the first one in reserve.
func (u *user) machine(name, mark string, pods ...*corev1.Pod) {
	GinkgoHelper()
	ctx := context.Background()
	m := fixture.Machine(name, func(m *mcm.Machine) {
		m.Labels, m.Spec.ProviderID = map[string]string{"name": "pool", mcm.NodeLabelKey: name}, "virtual:///"+name
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(u.set, mcm.SchemeGroupVersion.WithKind("MachineSet"))}
	})
	n := fixture.Node(name)
	if mark != "" {
		m.Annotations = map[string]string{machine.ReserveAnnotation: mark}
		n.Spec.Taints = []corev1.Taint{{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"1:9",%q:"6"}},"spec":{"excessReplicas":6}}`, machine.BoundsAnnotation, machine.AppliedExcessAnnotation)
		_, err := u.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Patch(ctx, "pool", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	_, err := u.core.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, p := range pods {
		p.Spec.NodeName = name
		u.pod(p)
	}
	m, err = u.ours.MachineV1alpha1().Machines(fixture.Namespace).Create(ctx, m, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	m.Status.CurrentStatus.Phase = mcm.MachineRunning
	_, err = u.ours.MachineV1alpha1().Machines(fixture.Namespace).UpdateStatus(ctx, m, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (u *user) pod(p *corev1.Pod) {
	GinkgoHelper()
	pods, status := u.core.CoreV1().Pods(fixture.Namespace), p.Status
	p.UID = ""
	p, err := pods.Create(context.Background(), p, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	p.Status = status
	_, err = pods.UpdateStatus(context.Background(), p, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func full(p *corev1.Pod) {
	p.Spec.SchedulerName = corev1.DefaultSchedulerName
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
}

func unschedulable(p *corev1.Pod) {
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
}

// change creates the Reserve or the CapacityBuffer, or deletes it if it exists, and notes what is
// requested then.
func change(ours versioned.Interface, reserve bool, wanted map[string]string) {
	GinkgoHelper()
	ctx := context.Background()
	reserves, buffers := ours.AutoscalingV1alpha1().Reserves(fixture.Namespace), ours.CapacityBufferV1beta1().CapacityBuffers("shop")
	var err error
	switch {
	case reserve && wanted["other"] == "":
		r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "queue", Namespace: fixture.Namespace}}
		r.Spec.Pools.Names, r.Spec.Replicas = []string{"other"}, 3
		_, err = reserves.Create(ctx, r, metav1.CreateOptions{})
		wanted["other"] = "queue=3"
	case reserve:
		err = reserves.Delete(ctx, "queue", metav1.DeleteOptions{})
		wanted["other"] = ""
	case wanted["pool"] == "":
		_, err = buffers.Create(ctx, bufferOf(v1beta1.StrategyReserved), metav1.CreateOptions{})
		wanted["pool"] = "capacity-buffers.pool=2"
	default:
		err = buffers.Delete(ctx, "web", metav1.DeleteOptions{})
		wanted["pool"] = ""
	}
	Expect(err).NotTo(HaveOccurred())
}
