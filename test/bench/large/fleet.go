// SPDX-License-Identifier: Apache-2.0

package large

import (
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/test/fixture"
)

const (
	// perPool is how many machines each MachineDeployment has, and inReserve how many of these are in
	// reserve.
	perPool, inReserve = 100, 10
	// podsPerNode is how many pods run on each machine that serves. They leave no room for another.
	podsPerNode = 11
	zones       = 3
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// fleet is everything that the controllers see of a cluster.
type fleet struct {
	deployments []*machine.MachineDeployment
	sets        []*mcm.MachineSet
	machines    []*mcm.Machine
	nodes       []*corev1.Node
	pods        []*corev1.Pod
	class       *mcm.MachineClass
}

// newFleet returns a fleet of MachineDeployments with a reserve, all of whose machines serve.
func newFleet(machines int) *fleet {
	f := &fleet{class: fixture.MachineClass(fixture.Class)}
	for i := range machines / perPool {
		f.addPool(i)
	}
	return f
}

func (f *fleet) addPool(i int) {
	stock := fixture.MachineDeployment(fmt.Sprintf("pool-%d-z%d", i/zones, i%zones), perPool-inReserve)
	d := &machine.MachineDeployment{ObjectMeta: stock.ObjectMeta, Spec: machine.MachineDeploymentSpec{
		StockMachineDeploymentSpec: stock.Spec, ExcessReplicas: ptr.To[int32](inReserve),
	}}
	d.UID, d.ResourceVersion = types.UID(d.Name), "1"
	d.Annotations = map[string]string{
		machine.BoundsAnnotation: fmt.Sprintf("0:%d", 2*perPool), machine.BalanceAnnotation: "continuous",
		machine.AppliedExcessAnnotation: fmt.Sprint(inReserve),
	}
	set, machines := fixture.Spares(d, perPool, perPool)
	set.Spec = mcm.MachineSetSpec{Replicas: perPool, Template: d.Spec.Template, Selector: d.Spec.Selector}
	set.ResourceVersion = "1"
	f.deployments, f.sets = append(f.deployments, d), append(f.sets, set)
	for j, m := range machines {
		m.Annotations = nil
		m.UID, m.ResourceVersion = types.UID(m.Name), "1"
		m.CreationTimestamp = metav1.NewTime(start.Add(time.Duration(j-perPool) * time.Minute))
		m.Labels = map[string]string{mcm.NodeLabelKey: m.Name, "name": d.Name}
		m.Spec.ProviderID = fmt.Sprint("virtual:///", m.Name)
		f.machines = append(f.machines, m)
		f.nodes = append(f.nodes, fixture.Node(m.Name, func(n *corev1.Node) {
			n.ResourceVersion, n.Labels[corev1.LabelTopologyZone] = "1", fmt.Sprint("z", i%zones)
		}))
		if j < perPool-inReserve {
			f.addPods(m.Name)
		}
	}
}

func (f *fleet) addPods(node string) {
	for k := range podsPerNode {
		f.pods = append(f.pods, fixture.Pod(fmt.Sprint(node, "-", k), func(p *corev1.Pod) {
			p.UID, p.Spec.NodeName, p.Status.Phase = types.UID(p.Name), node, corev1.PodRunning
			request(p, "350m")
		}))
	}
}

// waitingPods returns pods that wait, for which some of the reserve has to serve.
func waitingPods(pods int) (all []*corev1.Pod) {
	for i := range pods {
		all = append(all, fixture.Pod(fmt.Sprint("burst-", i), func(p *corev1.Pod) {
			p.UID, p.CreationTimestamp, p.Spec.SchedulerName = types.UID(p.Name), metav1.NewTime(start), "default-scheduler"
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
			request(p, "1")
		}))
	}
	return all
}

func request(p *corev1.Pod, cpu string) {
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
}

// replaceObjects replaces the objects that a plan has changed.
func (f *fleet) replaceObjects(after machinedeployment.After) {
	for i, d := range f.deployments {
		if d.Name == after.Deployment.Name {
			f.deployments[i] = after.Deployment
		}
	}
	for i, set := range f.sets {
		for _, changed := range after.Sets {
			if changed.UID == set.UID {
				f.sets[i] = changed
			}
		}
	}
	machines, nodes := map[string]*mcm.Machine{}, map[string]*corev1.Node{}
	for _, m := range after.Machines {
		machines[m.Name] = m
	}
	for _, n := range after.Nodes {
		nodes[n.Name] = n
	}
	for i, m := range f.machines {
		if changed := machines[m.Name]; changed != nil {
			f.machines[i] = changed
		}
		if changed := nodes[m.Name]; changed != nil {
			f.nodes[i] = changed
		}
	}
}
