// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/fit"
)

// reading keeps pods as package fit reads them, each for as long as it stays the same: a decision looks at all of them, and
// few have changed since the last; one that has is another object. Pods with claims that wait are read anew each time,
// since what they can reach depends on more than the pod.
type reading struct {
	mu   sync.Mutex
	pods map[types.UID]*fit.Pod
	// lookups are set before anything is read.
	lookups *fit.Lookups
}

// of returns a pod as it is read.
func (r *reading) of(pod *corev1.Pod) *fit.Pod {
	lookups := r.lookups
	if pod.Spec.NodeName != "" {
		lookups = nil
	}
	if lookups != nil && slices.ContainsFunc(pod.Spec.Volumes, isClaim) {
		return fit.NewPod(pod, lookups)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.pods[pod.UID]; ok && p.Object == pod {
		return p
	}
	if r.pods == nil {
		r.pods = map[types.UID]*fit.Pod{}
	}
	p := fit.NewPod(pod, lookups)
	if lookups != nil {
		p.Shape() // made here, since it is asked for side by side
	}
	r.pods[pod.UID] = p
	return p
}

func isClaim(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }

// forget a pod that is gone.
func (r *reading) forget(pod *corev1.Pod) {
	if pod == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, pod.UID)
}
