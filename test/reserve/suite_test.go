// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	ours "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// suite is what synctest wants to know; specs run while TestReserve does.
var suite *testing.T

func TestReserve(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Reserve")
}

// alone is the controller without a machine controller: what it writes, and nothing else happens.
type alone struct {
	*sim.Server
	user       ours.Interface
	stock      stock.Interface
	core       kubernetes.Interface
	events     *record.FakeRecorder
	metrics    *prometheus.Registry
	controller *machinedeployment.Controller
	// clock is the real one unless set.
	clock clock.WithTicker
	// end ends the controller.
	end      func()
	machines int
	// settled is how many writes there were when the controller had found everything at rest.
	settled int
}

// onItsOwn runs body on a pool with so many busy machines and so many in reserve, all as it is at rest.
func onItsOwn(serving, reserve int, o machinetaint.Settings, body func(a *alone)) {
	onServer(sim.Machine, serving, reserve, o, body)
}

// pruning are the machine kinds with the stock CustomResourceDefinition of MachineDeployments, and more fields of its spec.
func pruning(more ...string) []sim.Resource {
	all := slices.Clone(sim.Machine)
	for i := range all {
		if all[i].Name == "machinedeployments" {
			all[i].Known = &sim.Known{Spec: append([]string{"replicas", "selector", "template", "strategy"}, more...), Status: []string{
				"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas", "conditions", "collisionCount", "failedMachines",
			}}
		}
	}
	return all
}

func onServer(kinds []sim.Resource, serving, reserve int, o machinetaint.Settings, body func(a *alone)) {
	timed(nil, kinds, serving, reserve, o, body)
}

// timed gives the controller a clock.
func timed(clock clock.WithTicker, kinds []sim.Resource, serving, reserve int, o machinetaint.Settings, body func(a *alone)) {
	storm.Bubble(suite, func() {
		server := sim.New(sim.Options{Seed: 1, Resources: slices.Concat(sim.Core, kinds)})
		defer server.Close()
		config := server.ConfigFor("user")
		config.QPS = -1
		a := &alone{Server: server, user: ours.NewForConfigOrDie(config), stock: stock.NewForConfigOrDie(config), core: kubernetes.NewForConfigOrDie(config), clock: clock}
		a.pool(serving, reserve)
		a.end = a.start(o)
		defer func() { a.end() }()
		a.wrote(0) // what the controller adds to what others have made
		a.settled = len(a.Writes())
		body(a)
	})
}

// start runs the controller and returns what ends it.
func (a *alone) start(settings machinetaint.Settings) func() {
	config := a.ConfigFor(controllerUser)
	config.QPS = -1
	client, core := ours.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config)
	machines, nodes := stores.New(client, metav1.NamespaceAll), target.New(core, nil)
	a.events, a.metrics = record.NewFakeRecorder(1000), prometheus.NewRegistry()
	a.events.IncludeObject = true
	if settings.SurplusPatience == 0 {
		settings.SurplusPatience = machinetaint.DefaultSurplusPatience
	}
	if len(settings.Effects) == 0 {
		settings.Effects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule}
	}
	var err error
	a.controller, err = machinedeployment.New(machinedeployment.Clients{Machines: client.MachineV1alpha1(), Target: core.CoreV1()},
		machinedeployment.Informers{Machines: machines, Target: nodes}, a.events, machinedeployment.Options{
			Workers: 2, Clock: a.clock, Registerer: a.metrics, Settings: plan.Settings{ProtectInRollout: true, SafetyUp: 2, SafetyDown: 1}, Reserve: settings,
		})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	machines.Start(ctx)
	nodes.Start(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.controller.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
		machines.Shutdown()
		nodes.Shutdown()
	}
}

// restart has another process take over.
func (a *alone) restart() {
	a.end()
	a.end = a.start(machinetaint.Settings{})
	time.Sleep(10 * time.Second)
}

// controllerUser is the controller.
const controllerUser = "taint"

// pool makes a MachineDeployment with its MachineSet, machines, nodes and pods, as they are at rest.
func (a *alone) pool(serving, reserve int) {
	GinkgoHelper()
	ctx := context.Background()
	plain := fixture.MachineDeployment("pool", int32(serving))
	d := &api.MachineDeployment{ObjectMeta: plain.ObjectMeta, Spec: api.MachineDeploymentSpec{StockMachineDeploymentSpec: plain.Spec}}
	if reserve > 0 {
		d.Spec.ExcessReplicas, d.Spec.ReserveWitness = ptr.To(int32(reserve)), true
		d.Annotations = map[string]string{api.AppliedExcessAnnotation: fmt.Sprint(reserve), api.WantedExcessAnnotation: fmt.Sprint(reserve)}
	}
	d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	set := &mcmapi.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool-1", Namespace: fixture.Namespace, Labels: plain.Spec.Template.Labels, OwnerReferences: ownedBy("MachineDeployment", d.Name, d.UID)}}
	set.Spec.Replicas, set.Spec.Template, set.Spec.Selector = int32(serving+reserve), plain.Spec.Template, plain.Spec.Selector
	set, err = a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Create(ctx, set, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for range serving {
		name := a.machine(set, false)
		_, err := a.core.CoreV1().Pods(fixture.Namespace).Create(ctx, fixture.Pod("on-"+name, func(p *corev1.Pod) { p.Spec.NodeName = name }), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	for range reserve {
		a.machine(set, true)
	}
}

func ownedBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: mcmapi.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}

// replicated gives a pod a controller that replaces it when it is evicted.
func replicated(p *corev1.Pod) { p.OwnerReferences = ownedBy("ReplicaSet", "work", "1") }

// machine makes one that runs, with its Node, and returns its name: a, b and so on.
func (a *alone) machine(set *mcmapi.MachineSet, reserve bool) string {
	GinkgoHelper()
	ctx, name := context.Background(), string(rune('a'+a.machines))
	if a.machines >= 26 {
		name = fmt.Sprintf("m-%d", a.machines)
	}
	a.machines++
	m := fixture.Machine(name, func(m *mcmapi.Machine) {
		m.Labels = map[string]string{"name": "pool", "node": name}
		m.Annotations = map[string]string{"machinepriority.machine.sapcloud.io": "3"}
		m.OwnerReferences = ownedBy("MachineSet", set.Name, set.UID)
		m.Spec.ProviderID = "sim:///" + name
	})
	node := fixture.Node(name, func(n *corev1.Node) { n.Spec.ProviderID = "sim:///" + name })
	if reserve {
		taint := corev1.Taint{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}
		now := time.Now().UTC().Truncate(time.Second)
		mark := api.Reserve{Since: now, Taints: []corev1.Taint{taint}, Annotations: map[string]string{
			api.ReserveAnnotation: now.Format(time.RFC3339), api.ScaleDownDisabledAnnotation: "true"}}
		m.Annotations = map[string]string{"machinepriority.machine.sapcloud.io": "5", api.ReserveAnnotation: mark.String(),
			api.ReserveStateAnnotation: "Held since " + now.Format(time.RFC3339) + "; node " + name + " carries the reserve taint"}
		m.Spec.NodeTemplateSpec.Annotations, m.Spec.NodeTemplateSpec.Spec.Taints = mark.Annotations, mark.Taints
		node.Annotations, node.Spec.Taints = mark.Annotations, mark.Taints
	}
	_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Create(ctx, m, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(ctx, name, types.MergePatchType, []byte(`{"status":{"currentStatus":{"phase":"Running"}}}`), metav1.PatchOptions{}, "status")
	Expect(err).NotTo(HaveOccurred())
	_, err = a.core.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return name
}

// stored is a machine as the API server has it.
func (a *alone) stored(machine string) *mcmapi.Machine {
	GinkgoHelper()
	m, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Get(context.Background(), machine, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return m
}

func (a *alone) patch(format string, args ...any) {
	GinkgoHelper()
	_, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Patch(context.Background(), "pool", types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// stockScales writes the whole MachineDeployment as a client does whose types lack Evenkeel's fields.
func (a *alone) stockScales(replicas int32) {
	GinkgoHelper()
	all := a.stock.MachineV1alpha1().MachineDeployments(fixture.Namespace)
	d, err := all.Get(context.Background(), "pool", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	d.Spec.Replicas = replicas
	_, err = all.Update(context.Background(), d, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// wrote is what the controller has written since a number of writes, when nothing more comes.
func (a *alone) wrote(since int) (all []string) {
	time.Sleep(time.Minute)
	for _, w := range a.Writes()[max(since, a.settled):] {
		if w.User == controllerUser {
			all = append(all, strings.TrimSpace(w.Resource+" "+w.Name+" "+w.Subresource))
		}
	}
	return all
}

func (a *alone) heard() (all []string) {
	for {
		select {
		case event := <-a.events.Events:
			all = append(all, strings.TrimSuffix(event, " involvedObject{kind=MachineDeployment,apiVersion=machine.sapcloud.io/v1alpha1}"))
		default:
			return all
		}
	}
}

// counted is the value of one of the controller's metrics, summed over its series.
func (a *alone) counted(name string) (sum float64) {
	GinkgoHelper()
	families, err := a.metrics.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}
