// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// Each pool has three machines with a pod each, and two in reserve. A change of its template and one more replica is what versions are
// exchanged in.
const before, after, reserve = 3, 4, 2

// directions are played side by side, by as many processes.
var _ = directions("upgrade", &earlier, &present)
var _ = directions("back", &present, &earlier)

func directions(name string, from, to *localcluster.Program) bool {
	return Describe("A manager that is killed in a rollout, while replicas grow, and replaced by another version: "+name, Ordered, func() {
		total := 0 // writes of a change that nothing disturbs

		It("takes as many writes as this if it is not killed", func(ctx context.Context) {
			run(ctx, *from)
			p := newPool(ctx, "undisturbed")
			follow := p.follow(ctx)
			gate.arm(0, false, nil)
			p.change(ctx)
			p.rests(ctx, after, follow)
			total = gate.counted()
			AddReportEntry("writes", total)
			Expect(total).To(BeNumerically(">", 20))
		})

		It("loses no machine, moves no pod twice, and leaves nothing that hangs", func(ctx context.Context) {
			for i := range *moments {
				// The same change takes a few writes more or less, as status is gathered: not up to the last one.
				moment, done := 1 + i*total*9/10 / *moments, i%2 == 1
				By(fmt.Sprintf("moment %d: write %d of %d, done %t", i, moment, total, done))
				run(ctx, *from)
				p := newPool(ctx, fmt.Sprintf("killed-%d", i))
				follow := p.follow(ctx)
				struck := gate.arm(moment, done, func() { _ = cluster.Process(manager).Kill() })
				p.change(ctx)
				select {
				case <-struck:
				case <-time.After(atMost):
					Fail("there were fewer writes")
				}
				run(ctx, *to)
				p.rests(ctx, after, follow)
			}
		}, SpecTimeout(90*time.Minute))
	})
}

// run replaces the manager that runs.
func run(ctx context.Context, version localcluster.Program) {
	GinkgoHelper()
	_, err := cluster.RunProgram(ctx, version)
	Expect(err).NotTo(HaveOccurred())
}

// pool is a MachineDeployment, alone in a zone of its own, with a Deployment whose pods each want a machine of their own.
type pool struct{ name string }

func newPool(ctx context.Context, name string) pool {
	GinkgoHelper()
	p := pool{name}
	p.apply(ctx, `
apiVersion: v1
kind: Secret
metadata: {name: %[1]s}
stringData: {userData: none}
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata: {name: %[1]s}
provider: virtual
secretRef: {name: %[1]s, namespace: default}
providerSpec: {zone: %[1]s, region: local, instanceType: virtual.large, capacity: {cpu: "4", memory: 16Gi}, bootDelay: 1s}
nodeTemplate: {capacity: {cpu: "4", memory: 16Gi, gpu: "0"}, instanceType: virtual.large, region: local, zone: %[1]s}
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {name: %[1]s, annotations: {evenkeel.machine.sapcloud.io/bounds: "0:9"}}
spec:
  replicas: %[2]d
  excessReplicas: %[3]d
  selector: {matchLabels: {name: %[1]s}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 3, maxUnavailable: 0}}
  template:
    metadata: {labels: {name: %[1]s}}
    spec: {class: {kind: MachineClass, name: %[1]s}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {work: %[1]s}}
  template:
    metadata: {labels: {work: %[1]s}}
    spec:
      nodeSelector: {topology.kubernetes.io/zone: %[1]s}
      terminationGracePeriodSeconds: 0
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {work: %[1]s}}}]}}
      containers: [{name: work, image: work}]
`, name, before, reserve)
	Eventually(p.atRest).WithContext(ctx).WithArguments(before, "").Should(Succeed())
	return p
}

func (p pool) apply(ctx context.Context, format string, values ...any) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "pool.yaml")
	Expect(os.WriteFile(file, fmt.Appendf(nil, format, values...), 0o600)).To(Succeed())
	Expect(cluster.Apply(ctx, file)).To(Succeed())
}

// generation is the label of machines of the new template.
const generation = "generation"

// change begins a rollout, and asks for one more machine and pod.
func (p pool) change(ctx context.Context) {
	GinkgoHelper()
	_, err := ours.MachineV1alpha1().MachineDeployments(namespace).Patch(ctx, p.name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d,"template":{"metadata":{"labels":{%q:"2"}}}}}`, after, generation), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = kube.AppsV1().Deployments(namespace).Patch(ctx, p.name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, after), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (p pool) machines(ctx context.Context) ([]machine.Machine, error) {
	list, err := ours.MachineV1alpha1().Machines(namespace).List(ctx, metav1.ListOptions{LabelSelector: "name=" + p.name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// atRest is nil if as many machines serve as there are to be, each with a pod, the others are in reserve, and all are of one template.
func (p pool) atRest(ctx context.Context, replicas int, template string) error {
	all, err := p.machines(ctx)
	if err != nil {
		return err
	}
	pods, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "work=" + p.name})
	if err != nil {
		return err
	}
	busy := map[string]bool{}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
		}
		busy[pod.Spec.NodeName] = true
	}
	if len(all) != replicas+reserve || len(busy) != replicas {
		return fmt.Errorf("%d machines, %d with pods", len(all), len(busy))
	}
	spare := 0
	for _, m := range all {
		node, err := kube.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		marked := m.Annotations[machine.ReserveAnnotation] != ""
		closed := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == machine.ReserveTaintKey })
		switch {
		case m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase != "Running" || m.Labels[generation] != template:
			return fmt.Errorf("machine %s is %s, template %q", m.Name, m.Status.CurrentStatus.Phase, m.Labels[generation])
		case marked != closed || marked == busy[m.Name] || node.Spec.Unschedulable:
			return fmt.Errorf("machine %s: marked %t, closed %t, busy %t", m.Name, marked, closed, busy[m.Name])
		case marked:
			spare++
		}
	}
	md, err := ours.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if s := md.Status; s.ObservedGeneration != md.Generation || spare != reserve || int(s.ReadyExcessReplicas) != reserve || int(s.UpdatedReplicas) != replicas+reserve || s.UnavailableReplicas != 0 {
		return fmt.Errorf("%d in reserve, status %+v", spare, s)
	}
	return nil
}

// story is what happened to a pool: machines of the new template that were deleted, and pods that had to leave them.
type story struct {
	mu     sync.Mutex
	broken []string
}

// follow watches machines and pods of a pool.
func (p pool) follow(ctx context.Context) *story {
	GinkgoHelper()
	s, renewed := &story{}, map[string]bool{}
	machines, err := ours.MachineV1alpha1().Machines(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: generation + ",name=" + p.name})
	Expect(err).NotTo(HaveOccurred())
	pods, err := kube.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "work=" + p.name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(machines.Stop)
	DeferCleanup(pods.Stop)
	note := func(change func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		change()
	}
	go func() {
		for e := range machines.ResultChan() {
			if m, ok := e.Object.(*machine.Machine); ok {
				note(func() {
					if renewed[m.Name] = true; m.DeletionTimestamp != nil || e.Type == watch.Deleted {
						s.broken = append(s.broken, "new machine "+m.Name+" is deleted")
					}
				})
			}
		}
	}()
	go func() {
		for e := range pods.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok && (e.Type == watch.Deleted || pod.DeletionTimestamp != nil) {
				note(func() {
					if renewed[pod.Spec.NodeName] {
						s.broken = append(s.broken, "pod "+pod.Name+" leaves the new machine "+pod.Spec.NodeName)
					}
				})
			}
		}
	}()
	return s
}

// rests waits until all machines are of the new template, and expects that nothing is written then.
func (p pool) rests(ctx context.Context, replicas int, s *story) {
	GinkgoHelper()
	Eventually(p.atRest).WithContext(ctx).WithArguments(replicas, "2").Should(Succeed())
	Eventually(func() int {
		written := gate.counted()
		time.Sleep(2 * time.Second)
		return gate.counted() - written
	}).WithContext(ctx).Should(BeZero(), "writes in two seconds")
	s.mu.Lock()
	defer s.mu.Unlock()
	Expect(s.broken).To(BeEmpty())
}
