// SPDX-License-Identifier: Apache-2.0

package release

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/fit"
)

// reading keeps pods as package fit reads them, each for as long as it stays the same: a decision looks at all of them, and
// few have changed since the last. Only events add and remove pods, in their order, so what is gone is forgotten; a decision
// that finds a pod which no event has brought yet reads it for itself.
type reading struct {
	mu   sync.Mutex
	pods map[string]read
	// lookups are set before anything is read.
	lookups *fit.Lookups
}

// read is an object, and what it was read as.
type read struct {
	from *corev1.Pod
	pod  *fit.Pod
}

// note keeps a pod.
func (r *reading) note(pod *corev1.Pod) {
	p := readOf(pod)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods == nil {
		r.pods = map[string]read{}
	}
	r.pods[nameOf(pod)] = read{pod, p}
}

// forget a pod that is gone.
func (r *reading) forget(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, nameOf(pod))
}

// of returns a pod as it is read. What its volumes can reach depends on more than the pod, and is looked up each time.
func (r *reading) of(pod *corev1.Pod) *fit.Pod {
	p := r.known(pod)
	if p == nil {
		p = readOf(pod)
	}
	if pod.Spec.NodeName != "" {
		return p
	}
	return p.Located(r.lookups)
}

func (r *reading) known(pod *corev1.Pod) *fit.Pod {
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

func nameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
