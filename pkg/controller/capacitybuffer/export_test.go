// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"errors"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// WorkloadOf is what the cache keeps of a workload.
func WorkloadOf(item any) plan.Workload {
	kept, err := stripObject(item)
	if err != nil {
		panic(err)
	}
	return kept.(*workload).Workload
}

// NewestPod returns the newest pod of a workload with this scale.
func (p *Preview) NewestPod(namespace string, s *plan.Scale) *corev1.Pod {
	return p.NewestPods(namespace, s, 1)[0].Newest
}

// NewestPods returns a number of buffers of one workload, with its newest pod.
func (p *Preview) NewestPods(namespace string, s *plan.Scale, buffers int) []plan.Buffer {
	all := make([]plan.Buffer, buffers)
	for i := range all {
		all[i] = plan.Buffer{Object: &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: v1beta1.CapacityBufferSpec{ScalableRef: &v1beta1.ScalableRef{Name: "web"}}}, Scale: s}
	}
	p.c.findNewest(all)
	return all
}

// SlowLook makes each sync take this long, and counts them.
func (c *Controller) SlowLook(takes time.Duration, syncs *atomic.Int32) {
	c.daemons = slowList{c.daemons, takes, syncs}
}

type slowList struct {
	cache.Indexer
	takes time.Duration
	lists *atomic.Int32
}

func (s slowList) List() []any {
	s.lists.Add(1)
	time.Sleep(s.takes)
	return s.Indexer.List()
}

// AcceptsPods reports whether the free room on a machine counts.
func AcceptsPods(m pool.Machine) bool { return acceptsPods(m) }

// Differ reports whether an update of an object matters, as the cache keeps both.
func Differ(was, is any) bool {
	before, errBefore := stripObject(was)
	after, errAfter := stripObject(is)
	if err := errors.Join(errBefore, errAfter); err != nil {
		panic(err)
	}
	return differ(before, after)
}
