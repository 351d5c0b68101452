// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	stockinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancerapi "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/workloads"
	ours "github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	workloadinformers "github.com/evenkeel/evenkeel/pkg/client/informers/workloads"
	"github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer"
	"github.com/evenkeel/evenkeel/pkg/controller/booking"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation"
	"github.com/evenkeel/evenkeel/pkg/controller/release"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// nowhere is an API server that receives no request: no informer is started, and what is made here is ended at once.
var nowhere = &rest.Config{Host: "http://nowhere.invalid"}

// house has all that registers metrics, with one object of each kind in its stores so that all collectors have something
// to show.
type house struct {
	registry *recorder
	events   record.EventRecorder
	client   *evenkeel.Clientset
	core     *kubernetes.Clientset
	stock    *stock.Clientset
	machines *stores.Informers
	target   *target.Informers
	ours     ours.SharedInformerFactory
	control  informers.SharedInformerFactory
	seen     stockinformers.SharedInformerFactory
	workload workloads.Interface
	watched  workloadinformers.SharedInformerFactory
	ended    context.Context
}

// everything registers the metrics of all controllers.
func everything() *recorder {
	GinkgoHelper()
	ended, end := context.WithCancel(context.Background())
	end()
	h := &house{
		registry: &recorder{Registry: prometheus.NewPedanticRegistry()}, events: record.NewFakeRecorder(1), ended: ended,
		client: evenkeel.NewForConfigOrDie(nowhere), core: kubernetes.NewForConfigOrDie(nowhere), stock: stock.NewForConfigOrDie(nowhere), workload: workloads.NewForConfigOrDie(nowhere),
	}
	for _, register := range []func(){h.reachability, h.machinedeployment, h.nodegroup, h.release, h.balance, h.reserves, h.preparation, h.buffers, h.bookings, h.balancer, h.federatedhpa} {
		h.machines, h.target = stores.New(h.client, fixture.Namespace), target.New(h.core, nil)
		h.ours, h.control = ours.NewSharedInformerFactory(h.client, 0), informers.NewSharedInformerFactory(h.core, 0)
		h.watched = workloadinformers.NewSharedInformerFactory(h.workload, 0)
		h.seen = stockinformers.NewSharedInformerFactory(h.stock, 0)
		register()
	}
	return h.registry
}

func (h *house) reachability() {
	c := reachability.New("target", reachability.Nodes(h.core), reachability.Options{})
	Expect(c.Run(h.ended)).To(Succeed())
	h.registry.MustRegister(reachability.Metrics{c})
}

func (h *house) preparation() {
	c, err := preparation.New(h.core, h.machines, h.target, preparation.Options{Registerer: h.registry, States: &preparation.States{}})
	Expect(err).NotTo(HaveOccurred())
	c.Run(h.ended)
}

func (h *house) machinedeployment() {
	m := h.machines
	c, err := machinedeployment.New(machinedeployment.Clients{Machines: h.client.MachineV1alpha1(), Target: h.core.CoreV1()},
		machinedeployment.Informers{Machines: m, Target: h.target}, h.events, machinedeployment.Options{Registerer: h.registry})
	Expect(err).NotTo(HaveOccurred())
	c.Run(h.ended)
	put(m.Deployments(), &machine.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: fixture.Namespace, UID: "1"},
		Spec:       machine.MachineDeploymentSpec{ExcessReplicas: ptr.To[int32](1)},
		Status:     machine.MachineDeploymentStatus{StockMachineDeploymentStatus: mcm.MachineDeploymentStatus{Conditions: []mcm.MachineDeploymentCondition{{Type: machine.ReserveReady}}}},
	})
	put(m.Sets(), &mcm.MachineSet{ObjectMeta: owned("set", "MachineDeployment", "pool")})
	put(m.Machines(), fixture.Machine("a", func(m *mcm.Machine) {
		m.ObjectMeta = owned("a", "MachineSet", "set")
		m.Annotations = map[string]string{machine.ReserveAnnotation: "{}"}
	}))
}

func (h *house) nodegroup() {
	_, err := nodegroup.New(nodegroup.Clients{Machines: h.client.MachineV1alpha1()},
		nodegroup.Informers{Machines: h.machines, Target: h.target}, nodegroup.Options{Registerer: h.registry})
	Expect(err).NotTo(HaveOccurred())
}

func (h *house) release() {
	c, err := release.New(h.client.MachineV1alpha1(), release.Informers{Machines: h.machines, Target: h.target}, h.events, release.Options{Registerer: h.registry})
	Expect(err).NotTo(HaveOccurred())
	c.Run(h.ended)
}

func (h *house) balance() {
	c, err := balance.New(balance.Clients{Machines: h.client.MachineV1alpha1()},
		balance.Informers{Machines: h.machines, Target: h.target}, h.events, balance.Options{Registerer: h.registry})
	Expect(err).NotTo(HaveOccurred())
	c.Run(h.ended)
}

func (h *house) reserves() {
	all := h.ours.Autoscaling().V1alpha1().Reserves()
	c, err := reserves.New(reserves.Clients{Reserves: h.client.AutoscalingV1alpha1(), Machines: h.client.MachineV1alpha1()},
		reserves.Informers{Reserves: all, Machines: h.machines, Target: h.target}, h.events, reserves.Options{Registerer: h.registry})
	Expect(err).NotTo(HaveOccurred())
	c.Run(h.ended)
	put(all.Informer(), &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "office-hours", Namespace: fixture.Namespace}})
}

func (h *house) buffers() {
	c, err := capacitybuffer.New(capacitybuffer.Clients{Buffers: h.client.CapacityBufferV1beta1(), Reserves: h.client.AutoscalingV1alpha1()},
		capacitybuffer.Informers{
			Buffers: h.ours.CapacityBuffer().V1beta1().CapacityBuffers().Informer(), Reserves: h.ours.Autoscaling().V1alpha1().Reserves().Informer(),
			Machines: h.machines, Target: h.target, Shapes: capacitybuffer.NewShapes(nil, nil),
		}, capacitybuffer.Options{Registerer: h.registry})
	Expect(err).NotTo(HaveOccurred())
	c.Run(h.ended)
}

func (h *house) bookings() {
	c, err := booking.New(booking.Clients{Requests: h.client.ProvisioningRequestV1(), Reserves: h.client.AutoscalingV1alpha1()},
		booking.Informers{
			Requests: h.ours.ProvisioningRequest().V1().ProvisioningRequests().Informer(), Reserves: h.ours.Autoscaling().V1alpha1().Reserves().Informer(),
			Machines: h.machines, Target: h.target,
		}, booking.Options{Registerer: h.registry})
	Expect(err).NotTo(HaveOccurred())
	c.Run(h.ended)
}

func (h *house) balancer() {
	all := h.watched.Balancer().V1alpha1().Balancers()
	c, err := balancer.New(balancer.Clients{Dynamic: dynamic.NewForConfigOrDie(nowhere), Discovery: h.core.Discovery(), Balancers: h.workload.BalancerV1alpha1()},
		balancer.Informers{Balancers: all, Pods: h.control.Core().V1().Pods(), Autoscalers: h.control.Autoscaling().V2().HorizontalPodAutoscalers(), Nodes: h.control.Core().V1().Nodes()},
		h.events, balancer.Options{Registerer: h.registry})
	Expect(err).NotTo(HaveOccurred())
	c.Run(h.ended)
	put(all.Informer(), &balancerapi.Balancer{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: fixture.Namespace}})
}

func (h *house) federatedhpa() {
	all := h.watched.Autoscaling().V1alpha1().FederatedHorizontalPodAutoscalers()
	c, err := federatedhpa.New(h.workload.AutoscalingV1alpha1(), all, federatedhpa.NewSecrets(h.core, fixture.Namespace, nil), h.events, federatedhpa.Options{Registerer: h.registry})
	Expect(err).NotTo(HaveOccurred())
	c.Run(h.ended)
	put(all.Informer(), &autoscaling.FederatedHorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: fixture.Namespace},
		Status:     autoscaling.FederatedHorizontalPodAutoscalerStatus{Clusters: []autoscaling.ClusterStatus{{Name: "east"}}},
	})
}

func put(informer cache.SharedIndexInformer, object runtime.Object) {
	GinkgoHelper()
	Expect(informer.GetIndexer().Add(object)).To(Succeed())
}

func owned(name, kind, owner string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace, UID: "1", OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, UID: "1", Controller: ptr.To(true)}}}
}
