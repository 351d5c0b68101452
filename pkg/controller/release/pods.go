// SPDX-License-Identifier: Apache-2.0

package release

import (
	"iter"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// podCache keeps what decisions need to know of pods, until they change: a decision considers all
// pods, and few have changed since the last one. Only events add and remove pods, in their order, so
// deleted pods are forgotten. If a decision finds a pod whose event has not arrived yet, it reads
// the pod itself.
type podCache struct {
	mu sync.Mutex
	// pods are found by their objects, so that a decision need not look into these. latest contains
	// the objects.
	pods   map[*corev1.Pod]*cachedPod
	latest map[types.NamespacedName]*corev1.Pod
	// lookups are set before the first pod is read.
	lookups *fit.Lookups
}

// cachedPod is a pod as package fit reads it, without the constraints of its volumes.
type cachedPod struct {
	*fit.Pod
	from *corev1.Pod
	// node is where the pod is bound; empty if it waits. ended reports whether it runs no more.
	node  string
	ended bool
	// controller is the UID of the object that controls the pod; empty if that replaces the pod: if
	// the pod is being deleted, or has ended. A Job replaces no pod that has succeeded.
	controller types.UID
	// daemon reports whether that is a DaemonSet.
	daemon bool
}

// needsRoom reports whether the pod needs room on its Node.
func (p *cachedPod) needsRoom() bool { return !p.ended && p.node != "" }

// isWaiting reports whether the pod has no Node yet.
func (p *cachedPod) isWaiting() bool { return !p.ended && p.node == "" }

// addPod keeps a pod in place of the one with the same name.
func (r *podCache) addPod(pod *corev1.Pod) {
	p := readPod(pod)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods == nil {
		r.pods, r.latest = map[*corev1.Pod]*cachedPod{}, map[types.NamespacedName]*corev1.Pod{}
	}
	delete(r.pods, r.latest[nameOf(pod)])
	r.pods[pod], r.latest[nameOf(pod)] = p, pod
}

// forget removes a deleted pod.
func (r *podCache) forget(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, r.latest[nameOf(pod)])
	delete(r.latest, nameOf(pod))
}

// readAll returns what is known of these pods.
func (r *podCache) readAll(pods iter.Seq[*corev1.Pod]) (all []*cachedPod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all = make([]*cachedPod, 0, len(r.pods))
	for pod := range pods {
		p := r.pods[pod]
		if p == nil {
			p = readPod(pod)
		}
		all = append(all, p)
	}
	return all
}

// podFor returns a pod as package fit reads it. What its volumes can reach depends on more than the
// pod, and is looked up each time.
func (r *podCache) podFor(pod *corev1.Pod) *fit.Pod { return r.podWith(pod, r.lookups) }

func (r *podCache) podWith(pod *corev1.Pod, lookups *fit.Lookups) *fit.Pod {
	p := r.cached(pod)
	if p == nil {
		p = readPod(pod)
	}
	if pod.Spec.NodeName != "" {
		return p.Pod
	}
	return p.Located(lookups)
}

func (r *podCache) cached(pod *corev1.Pod) *cachedPod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[pod]
}

func readPod(pod *corev1.Pod) *cachedPod {
	waits := pod.Spec.NodeName == ""
	p := &cachedPod{Pod: fit.Read(pod, waits), from: pod, node: pod.Spec.NodeName, ended: pool.Finished(pod)}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && pod.DeletionTimestamp == nil && (!p.ended || owner.Kind == jobKind) {
		p.controller, p.daemon = owner.UID, owner.Kind == "DaemonSet"
	}
	if waits {
		p.Shape() // made here, since it is asked for side by side
	}
	return p
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// podsByNode contains the pods of each Node.
type podsByNode struct {
	number map[string]int // of a Node's list
	lists  [][]*fit.Pod
}

// groupByNode returns the pods that run on each Node. It counts them before it fills the lists, which
// is faster than to let thousands of lists grow.
func groupByNode(all []*cachedPod) *podsByNode {
	b := &podsByNode{number: map[string]int{}}
	var counts []int
	numbers := make([]int, len(all))
	for i, p := range all {
		if !p.needsRoom() {
			continue
		}
		n := b.numberOf(p.node)
		if n == len(counts) {
			counts = append(counts, 0)
		}
		numbers[i] = n
		counts[n]++
	}
	space := make([]*fit.Pod, len(all))
	for n, count := range counts {
		b.lists[n], space = space[:0:count], space[count:]
	}
	for i, p := range all {
		if p.needsRoom() {
			n := numbers[i]
			b.lists[n] = append(b.lists[n], p.Pod)
		}
	}
	return b
}

// numberOf returns the number of a Node's list. It adds an empty list if there is none.
func (b *podsByNode) numberOf(node string) int {
	n, known := b.number[node]
	if !known {
		n = len(b.lists)
		b.number[node], b.lists = n, append(b.lists, nil)
	}
	return n
}

func (b *podsByNode) addPod(node string, p *fit.Pod) {
	n := b.numberOf(node)
	b.lists[n] = append(b.lists[n], p)
}

// podsOn returns the pods of a Node.
func (b *podsByNode) podsOn(node string) []*fit.Pod {
	if n, known := b.number[node]; known {
		return b.lists[n]
	}
	return nil
}
