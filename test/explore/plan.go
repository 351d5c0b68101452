// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"maps"
	"sync"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machineapi "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	deploymentplan "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// knownPool is what the controller decides from.
type knownPool struct {
	deployment deployment
	sets       [2]machineSet
	machines   [slots]machine
	hosts      [slots]host
	silent     bool
	memory     memory
}

// known returns what the controller knows of a world.
func (w *World) known() knownPool {
	k := knownPool{deployment: w.deployment.seen, silent: w.silent.seen, memory: w.memory}
	for s := range w.sets {
		k.sets[s] = w.sets[s].seen
	}
	for i := range w.machines {
		k.machines[i], k.hosts[i] = w.machines[i].machine.seen, w.machines[i].host.seen
	}
	return k
}

// decision is a plan: what to write, and the law that it breaks.
type decision struct {
	work   work
	broken string
}

// memo remembers decisions. They are functions of what is known, and most steps change nothing of
// that.
type memo[K comparable, V any] struct {
	mu  sync.RWMutex
	all map[K]V
}

// mostRemembered bounds the memory that a memo needs.
const mostRemembered = 400_000

// planFor returns the decision about what is known.
func (m *memo[K, V]) planFor(in K, decide func(K) V) V {
	m.mu.RLock()
	made, there := m.all[in]
	m.mu.RUnlock()
	if there {
		return made
	}
	made = decide(in)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil || len(m.all) >= mostRemembered {
		m.all = map[K]V{}
	}
	m.all[in] = made
	return made
}

// view returns the input of the plan, read as the controller reads it.
func (k *knownPool) view() deploymentplan.View {
	v := deploymentplan.View{Now: now, Settings: deploymentplan.Settings{SafetyUp: unlimited, SafetyDown: 1}, Deployment: k.deployment.object(), Nodes: map[string]*corev1.Node{}}
	o := pool.Objects{}
	machines := map[uint8][]*mcm.Machine{}
	for i := range k.machines {
		m, h := &k.machines[i], &k.hosts[i]
		if !m.there {
			continue
		}
		object := m.object(i, &k.deployment)
		o.Machines, machines[m.set] = append(o.Machines, object), append(machines[m.set], object)
		if h.there && m.hasProviderID() {
			v.Nodes[name(i)] = h.node(i, m)
			o.Nodes = append(o.Nodes, v.Nodes[name(i)])
		}
		if h.busy {
			o.Pods = append(o.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name(i), OwnerReferences: ownedBy("ReplicaSet", "web")}, Spec: corev1.PodSpec{NodeName: name(i)}})
		}
	}
	for s, one := range k.sets {
		if one.there {
			set := one.object(uint8(s), uint8(s) == k.deployment.template)
			o.Sets = append(o.Sets, set)
			v.Sets = append(v.Sets, deploymentplan.Set{Object: set, Machines: machines[uint8(s)]})
		}
	}
	v.Reserve = k.reserve(v.Deployment, pool.NewList(o))
	return v
}

// reserve returns what decides about the reserve, nil if there is no trace of one.
func (k *knownPool) reserve(d *machineapi.MachineDeployment, from *pool.List) *machinetaint.View {
	v := &machinetaint.View{Now: now, Settings: settings, Deployment: d, Memory: k.memory.object(d), Evictions: &machinetaint.Evictions{}}
	if k.silent {
		v.Unreachable = "the target cluster is silent"
	}
	s := pool.Read(d, from, now)
	for _, m := range s.Machines {
		v.Machines = append(v.Machines, machinetaint.Machine{Machine: m})
	}
	if v.HasNoReserve() {
		return nil
	}
	for _, set := range s.Sets {
		v.SetReplicas += int(set.Spec.Replicas)
	}
	v.CurrentSet, v.Rollout, v.Allocatable = s.Rollout.Set, s.Rollout.Replacing, s.Allocatable
	return v
}

// decide makes a plan.
func (k knownPool) decide() *decision {
	v := k.view()
	p := deploymentplan.New(v)
	d := &decision{}
	w := &d.work
	w.next, w.memory, w.remembers = k.deployment, k.memory, true
	switch {
	case p.Memory != nil:
		w.memory = memoryOf(*p.Memory)
	case v.Reserve == nil:
		w.memory = memory{}
	}
	if len(p.SetClaims)+len(p.Claims)+len(p.SetDeletions) > 0 {
		d.broken = "I5: The plan adopts, releases or deletes MachineSets, for which there is no reason."
	}
	if p.Deployment != nil {
		next, err := deploymentOf(k.deployment, p.Deployment.After)
		if w.next = next; err != nil {
			d.broken = "I6: The plan records an excess that cannot be parsed: " + err.Error()
		}
		w.writes = next != k.deployment
	}
	k.addSets(w, p)
	k.addMachines(w, p)
	if d.broken == "" {
		d.broken = k.misplanned(w)
	}
	return d
}

// addSets adds what the plan does with MachineSets.
func (k *knownPool) addSets(w *work, p deploymentplan.Plan) {
	for _, c := range p.Sets {
		s := setIndex(c.After.Name)
		if next := machineSetOf(c.After); next != k.sets[s] {
			w.sets[s] = setWrite{pending: true, to: next}
		}
	}
	for _, one := range p.NewSets {
		w.sets[k.deployment.template] = setWrite{pending: true, creates: true, to: machineSetOf(one)}
	}
	for _, c := range p.Creations {
		w.births[setIndex(c.Set.Name)] = births{serve: uint8(c.Count - c.Reserve), reserve: uint8(c.Reserve)}
	}
}

// addMachines adds what the plan does with machines and Nodes.
func (k *knownPool) addMachines(w *work, p deploymentplan.Plan) {
	for _, c := range p.Machines {
		i := index(c.Before.Name)
		m := &k.machines[i]
		e := errand{marked: pool.Marked(c.After), condemned: pool.Condemned(c.After), first: c.After.Annotations[machineutils.MachinePriority] == "1"}
		if e.marked != m.marked || e.condemned != m.condemned || e.first != m.first {
			e.writes, e.enters = true, e.marked && !m.marked
			w.errands[i] = e
		}
	}
	for _, c := range p.Nodes {
		i := index(c.Before.Name)
		switch is, was := pool.HasReserveTaint(c.After.Spec.Taints), k.hosts[i].closed; {
		case is && !was:
			w.errands[i].node = closing
		case was && !is:
			w.errands[i].node = opening
		}
	}
	for _, c := range p.Deletions {
		e := &w.errands[index(c.Machine.Name)]
		if e.goes = forOther; c.Reason == deploymentplan.Surplus {
			e.goes = forSurplus
		}
	}
}

// misplanned returns the law that a plan breaks, by what is known.
func (k *knownPool) misplanned(w *work) string {
	for _, law := range []func(*work) string{k.misdeleted, k.misentered, k.misgrown, k.misborn, k.misnamed, k.mislowered, k.misread} {
		if broken := law(w); broken != "" {
			return broken
		}
	}
	for i := range k.machines {
		if m := &k.machines[i]; m.leaving() && k.memory.surplus == never && w.memory.surplus != never {
			return fmt.Sprintf("L5: Patience with the surplus begins while %s is leaving.", name(i))
		}
	}
	return ""
}

// turn is what the controller of MachineDeployments does next, for models that are about others: the
// plan of a MachineDeployment with one MachineSet, which has the size that it is to have.
type turn struct {
	// moved is a machine that enters or leaves the reserve; empty if none does.
	moved string
	held  bool
	// creates reports whether a machine is created, and serves whether it serves.
	creates, serves bool
	deletes         []string
}

// turnOf returns the next turn for a MachineDeployment that has these machines, and an excess that is
// applied. Pods are those on their Nodes.
func turnOf(d *machineapi.MachineDeployment, excess int, machines []*mcm.Machine, pods []*corev1.Pod) (t turn) {
	v := turnView(d, excess, machines, pods)
	p := deploymentplan.New(v)
	for _, c := range p.Moves {
		if c.Mark != machinetaint.Keep && t.moved == "" {
			t.moved, t.held = c.Name, c.Mark == machinetaint.Hold
		}
	}
	for _, c := range p.Creations {
		t.creates, t.serves = true, c.Count > c.Reserve
	}
	for _, gone := range p.Deletions {
		t.deletes = append(t.deletes, gone.Machine.Name)
	}
	return t
}

func turnView(d *machineapi.MachineDeployment, excess int, machines []*mcm.Machine, pods []*corev1.Pod) deploymentplan.View {
	d = d.DeepCopy()
	d.Finalizers, d.Spec.Strategy = []string{deploymentplan.Finalizer}, rollingUpdate()
	d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "pool"}}, map[string]string{"name": "pool"}
	d.Spec.Template.Spec.Class = classOf(0)
	total := uint8(max(0, int(pool.Workload(d, d.Spec.Replicas))) + excess)
	if excess > 0 {
		d.Annotations[machineapi.AppliedExcessAnnotation] = record{excess: uint8(excess)}.text()
	}
	set := machineSet{there: true, asks: total, total: total + 1}.object(0, true)
	set.OwnerReferences = ownedBy("MachineDeployment", string(d.UID))
	set.Spec.Template.Spec = *d.Spec.Template.Spec.DeepCopy()
	delete(set.Annotations, machineutils.LastDeploymentReplicaChangeByScalerTime)
	v := deploymentplan.View{Now: now, Settings: deploymentplan.Settings{SafetyUp: unlimited, SafetyDown: 1}, Deployment: d, Nodes: map[string]*corev1.Node{}}
	o := pool.Objects{Sets: []*mcm.MachineSet{set}, Pods: pods}
	for _, m := range machines {
		m = asCreated(m, set)
		if o.Machines = append(o.Machines, m); m.Labels[mcm.NodeLabelKey] != "" {
			node := nodeAsCreated(m)
			o.Nodes, v.Nodes[node.Name] = append(o.Nodes, node), node
		}
	}
	v.Sets = []deploymentplan.Set{{Object: set, Machines: o.Machines}}
	known := knownPool{memory: memory{known: true}}
	v.Reserve = known.reserve(d, pool.NewList(o))
	return v
}

// asCreated returns a Machine as it is created for a MachineSet.
func asCreated(m *mcm.Machine, set *mcm.MachineSet) *mcm.Machine {
	marked := pool.Marked(m)
	m.OwnerReferences, m.Spec = ownedBy("MachineSet", set.Name), *set.Spec.Template.Spec.DeepCopy()
	maps.Copy(m.Labels, set.Spec.Template.Labels)
	if _, failing := pool.Failure(m); !failing {
		m.Spec.ProviderID = "cloud:///" + m.Name
	}
	if delete(m.Annotations, machineapi.ReserveAnnotation); marked {
		m = pool.Mark(m, settings.NewMark(m.CreationTimestamp.Time))
	}
	return m
}

// nodeAsCreated returns the Node of a Machine, with the taints of its template.
func nodeAsCreated(m *mcm.Machine) *corev1.Node {
	template := m.Spec.NodeTemplateSpec
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Annotations: template.Annotations}, Spec: corev1.NodeSpec{ProviderID: m.Spec.ProviderID, Taints: template.Spec.Taints}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}
