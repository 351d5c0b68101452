// SPDX-License-Identifier: Apache-2.0

package release

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/fit"
)

// podCache keeps pods as package fit reads them, until they change: a decision considers all pods,
// and few have changed since the last one. Only events add and remove pods, in their order, so
// deleted pods are forgotten. If a decision finds a pod whose event has not arrived yet, it reads
// the pod itself.
type podCache struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]cachedPod
	// lookups are set before the first pod is read.
	lookups *fit.Lookups
}

// cachedPod is an object, and what it was read as.
type cachedPod struct {
	from *corev1.Pod
	pod  *fit.Pod
}

// addPod keeps a pod.
func (r *podCache) addPod(pod *corev1.Pod) {
	p := readOf(pod)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods == nil {
		r.pods = map[types.NamespacedName]cachedPod{}
	}
	r.pods[nameOf(pod)] = cachedPod{pod, p}
}

// forget removes a deleted pod.
func (r *podCache) forget(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, nameOf(pod))
}

// podFor returns a pod as package fit reads it. What its volumes can reach depends on more than the
// pod, and is looked up each time.
func (r *podCache) podFor(pod *corev1.Pod) *fit.Pod {
	p := r.cached(pod)
	if p == nil {
		p = readOf(pod)
	}
	if pod.Spec.NodeName != "" {
		return p
	}
	return p.Located(r.lookups)
}

func (r *podCache) cached(pod *corev1.Pod) *fit.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kept := r.pods[nameOf(pod)]; kept.from == pod {
		return kept.pod
	}
	return nil
}

func readOf(pod *corev1.Pod) *fit.Pod {
	waits := pod.Spec.NodeName == ""
	p := fit.Read(pod, waits)
	if waits {
		p.Shape() // made here, since it is asked for side by side
	}
	return p
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
