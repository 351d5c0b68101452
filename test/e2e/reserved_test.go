// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
)

// excess asks for machines in reserve.
func excess(n int32) func(*machine.MachineDeployment) {
	return func(md *machine.MachineDeployment) { md.Spec.ExcessReplicas = &n }
}

func (p pool) want(ctx context.Context, excess int) {
	GinkgoHelper()
	p.patch(ctx, fmt.Sprintf(`{"spec":{"excessReplicas":%d}}`, excess))
}

// rests waits until this many machines serve and this many are in reserve, with correct marks and status.
func (p pool) rests(ctx context.Context, serving, reserve int, reason string) {
	GinkgoHelper()
	Eventually(func() error { return p.resting(ctx, serving, reserve, reason) }).WithContext(ctx).Should(Succeed())
}

func (p pool) resting(ctx context.Context, serving, reserve int, reason string) error {
	if err := p.settled(ctx, int32(serving+reserve)); err != nil {
		return err
	}
	s, r, err := p.split(ctx)
	if err != nil || len(s) != serving || len(r) != reserve {
		return fmt.Errorf("%d serve and %d are in reserve, want %d and %d: %w", len(s), len(r), serving, reserve, err)
	}
	md, err := p.deployment(ctx)
	if err != nil {
		return err
	}
	if said := p.says(md); said != reason || int(md.Status.ExcessReplicas) != reserve || int(md.Status.ReadyExcessReplicas) != reserve {
		return fmt.Errorf("condition %q, %d of %d in reserve ready, want %q", said, md.Status.ReadyExcessReplicas, md.Status.ExcessReplicas, reason)
	}
	return nil
}

// says returns the reason of the condition ReserveReady, empty without the condition.
func (p pool) says(md *machine.MachineDeployment) string {
	for _, c := range md.Status.Conditions {
		if c.Type == machine.ReserveReady {
			return c.Reason
		}
	}
	return ""
}

// split names the machines that serve and those in reserve. It is an error if a Node does not say the same as its Machine.
func (p pool) split(ctx context.Context) (serving, reserve []string, err error) {
	list, err := p.machines(ctx)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := p.nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	held := map[string]bool{}
	for _, n := range nodes {
		if held[n.Name] = holds(&n); held[n.Name] != (n.Annotations[machine.ReserveAnnotation] != "") ||
			held[n.Name] != (n.Annotations[machine.ScaleDownDisabledAnnotation] == "true") {
			return nil, nil, fmt.Errorf("node %s carries a part of the mark: %v %v", n.Name, n.Spec.Taints, n.Annotations)
		}
	}
	for _, m := range list {
		marked := m.Annotations[machine.ReserveAnnotation] != ""
		if there, known := held[m.Name]; known && there != marked {
			return nil, nil, fmt.Errorf("machine %s is marked: %t, its node: %t", m.Name, marked, there)
		}
		if marked {
			reserve = append(reserve, m.Name)
		} else {
			serving = append(serving, m.Name)
		}
	}
	return serving, reserve, nil
}

// holds reports whether a Node has the taint of the reserve.
func holds(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == machine.ReserveTaintKey && t.Effect == corev1.TaintEffectNoSchedule
	})
}

func (p pool) serving(ctx context.Context) []string {
	GinkgoHelper()
	s, _, err := p.split(ctx)
	Expect(err).NotTo(HaveOccurred())
	return s
}

func (p pool) reserve(ctx context.Context) []string {
	GinkgoHelper()
	_, r, err := p.split(ctx)
	Expect(err).NotTo(HaveOccurred())
	return r
}

// work makes pods that each take a whole machine of the pool, and waits until they run.
func (p pool) work(ctx context.Context, pods int32, changes ...func(*corev1.PodTemplateSpec)) {
	GinkgoHelper()
	labels := map[string]string{"work": p.name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "work-" + p.name}}
	d.Spec.Replicas, d.Spec.Selector = &pods, &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec = wholeMachine(p.name)
	for _, change := range changes {
		change(&d.Spec.Template)
	}
	_, err := kube.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.AppsV1().Deployments(namespace).Delete(ctx, d.Name, metav1.DeleteOptions{})).To(Succeed())
	})
	Eventually(func() int { return len(p.busy(ctx)) }).WithContext(ctx).Should(Equal(int(pods)))
}

// wholeMachine is a pod that takes a machine of this zone for itself.
func wholeMachine(zone string) corev1.PodSpec {
	return corev1.PodSpec{
		NodeSelector:                  map[string]string{corev1.LabelTopologyZone: zone},
		TerminationGracePeriodSeconds: ptr.To[int64](0),
		Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("3")},
		}}},
	}
}

func (p pool) moreWork(ctx context.Context, pods int32) {
	GinkgoHelper()
	_, err := kube.AppsV1().Deployments(namespace).Patch(ctx, "work-"+p.name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, pods), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// busy are the machines that run the pods of work, sorted.
func (p pool) busy(ctx context.Context) []string {
	GinkgoHelper()
	list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "work=" + p.name})
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			names = append(names, pod.Spec.NodeName)
		}
	}
	slices.Sort(names)
	return names
}

// witness sees every change of a pool's machines, nodes and pods.
type witness struct {
	mu      sync.Mutex
	pool    string
	marked  map[string]bool // Machines
	there   map[string]bool // Machines, terminating ones included
	most    int
	lost    int // pods of work that ended
	crimes  []string
	ordered []string // what happened to machines and nodes
}

// witness looks from now on to the end of the spec.
func (p pool) witness(ctx context.Context) *witness {
	GinkgoHelper()
	w := &witness{pool: p.name, marked: map[string]bool{}, there: map[string]bool{}}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	core := informers.NewSharedInformerFactory(kube, 0)
	ours := externalversions.NewSharedInformerFactoryWithOptions(machines, 0, externalversions.WithNamespace(namespace))
	m, n, q := ours.Machine().V1alpha1().Machines().Informer(), core.Core().V1().Nodes().Informer(), core.Core().V1().Pods().Informer()
	DeferCleanup(func() {
		end()
		core.Shutdown()
		ours.Shutdown()
	})
	// Nodes before pods: a pod that is there from the beginning is on a node that is.
	for _, follow := range []struct {
		informer cache.SharedIndexInformer
		seen     func(any, bool)
	}{{m, w.machine}, {n, w.node}, {q, w.pod}} {
		handled, err := follow.informer.AddEventHandler(handler(follow.seen))
		Expect(err).NotTo(HaveOccurred())
		core.StartWithContext(life)
		ours.StartWithContext(life)
		Expect(cache.WaitFor(ctx, "", handled.HasSyncedChecker())).To(BeTrue())
	}
	return w
}

func handler(seen func(item any, gone bool)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(item any) { seen(item, false) },
		UpdateFunc: func(_, item any) { seen(item, false) },
		DeleteFunc: func(item any) {
			if last, ok := item.(cache.DeletedFinalStateUnknown); ok {
				item = last.Obj
			}
			seen(item, true)
		},
	}
}

func (w *witness) machine(item any, gone bool) {
	m, ok := item.(*machine.Machine)
	if !ok || m.Labels["name"] != w.pool {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.there, m.Name)
	if !gone {
		w.there[m.Name] = true
		w.marked[m.Name] = m.Annotations[machine.ReserveAnnotation] != ""
	}
	w.most = max(w.most, len(w.there))
}

func (w *witness) node(item any, gone bool) {
	n, ok := item.(*corev1.Node)
	if !ok || gone || n.Labels[corev1.LabelTopologyZone] != w.pool {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	state := "open"
	if holds(n) || n.Spec.Unschedulable {
		state = "held"
	}
	w.ordered = append(w.ordered, n.Name+" "+state)
}

func (w *witness) pod(item any, gone bool) {
	pod, ok := item.(*corev1.Pod)
	if !ok || pod.Labels["work"] != w.pool {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if gone {
		w.lost++
		return
	}
	if node := pod.Spec.NodeName; node != "" && !slices.Contains(w.ordered, node+" open") {
		w.crimes = append(w.crimes, fmt.Sprintf("pod %s landed on %s, which never served", pod.Name, node))
	}
}

// opened are the nodes that workload could ever come to, in the order in which that began.
func (w *witness) opened() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, line := range w.ordered {
		if name, open := strings.CutSuffix(line, " open"); open && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (w *witness) largest() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

func (w *witness) podsLost() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}
