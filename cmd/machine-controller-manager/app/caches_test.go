// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
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

	It("reads only Nodes of the target cluster until a MachineDeployment wants a reserve, then each kind once, and machines twice: as they are, and through the lens", func() {
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
		Expect(machines()).To(And(HaveKeyWithValue("machines", 2), HaveKeyWithValue("machinesets", 2), HaveKeyWithValue("machinedeployments", 2)))
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
		Entry("a Machine that is left in reserve", func(ctx context.Context) {
			m := fixture.Machine("left", func(m *mcm.Machine) { m.Annotations = map[string]string{api.ReserveAnnotation: "2026-01-01T00:00:00Z"} })
			_, err := versioned.NewForConfigOrDie(servers[0].ConfigFor("user")).MachineV1alpha1().Machines(m.Namespace).Create(ctx, m, metav1.CreateOptions{})
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
	Entry("no stock MachineDeployment", &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"deployment.kubernetes.io/revision": "1"}}, Status: conditions(mcm.MachineDeploymentAvailable, mcm.MachineDeploymentProgressing)}, false),
	Entry("an excess, also of 0", &api.MachineDeployment{Spec: api.MachineDeploymentSpec{ExcessReplicas: new(int32)}}, true),
	Entry("an annotation", &api.MachineDeployment{ObjectMeta: annotated(api.BalanceAnnotation)}, true),
	Entry("an annotation of a Gardener's worker pool", gardeners(api.PoolExcessAnnotation), true),
	Entry("a status", &api.MachineDeployment{Status: api.MachineDeploymentStatus{ExcessReplicas: 1}}, true),
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
