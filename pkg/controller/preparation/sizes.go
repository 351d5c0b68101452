// SPDX-License-Identifier: Apache-2.0

package preparation

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/requeue"
)

const (
	// measureAgain is after how long a Node is read again that does not report all images yet: kubelets list images
	// twice a minute.
	measureAgain = 10 * time.Second
	// measureFor is how long that is tried: a Node reports its fifty largest images only.
	measureFor = time.Minute
	// measuredAtOnce is how many Nodes are read in one sync.
	measuredAtOnce = 20
)

// measurement is that of the images of a pod, as its Node reports them.
type measurement struct {
	node   string
	images []string
	sizes  map[string]int64
	// fresh reports whether the pod has pulled them since Run began: an earlier process has counted the others.
	fresh bool
	// next is when the Node is read, and last when it is read for the last time. next is zero if the sizes are final.
	next, last time.Time
}

// sizesOf returns the sizes of what a pod has pulled, as far as they are known, and whether more may become known. If
// so, the next sync measures them.
func (c *Controller) sizesOf(pod *corev1.Pod) (sizes map[string]int64, measuring bool) {
	m := c.sizes[pod.UID]
	if m == nil {
		now := c.o.Clock.Now()
		m = &measurement{node: pod.Spec.NodeName, next: now, last: now.Add(measureFor)}
		for _, v := range pod.Spec.Volumes {
			if v.Image != nil {
				m.images = append(m.images, v.Image.Reference)
			}
		}
		c.sizes[pod.UID] = m
		if started := startOf(pod); started.After(c.begun) {
			m.fresh = true
			c.metrics.pulledIn(started.Sub(pod.CreationTimestamp.Time))
		}
		c.loop.Add(everything)
	}
	return m.sizes, !m.next.IsZero()
}

// startOf returns when the container of a pod started, which is after all images are there.
func startOf(pod *corev1.Pod) (at time.Time) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil {
			at = c.State.Running.StartedAt.Time
		}
	}
	return at
}

// measure reads Nodes whose images are not known yet, and returns when to do so again; 0 means never.
func (c *Controller) measure(ctx context.Context) (again time.Duration) {
	now, due := c.o.Clock.Now(), map[types.UID]*measurement{}
	for uid, m := range c.sizes {
		switch left := m.next.Sub(now); {
		case m.next.IsZero():
		case left > 0:
			again = requeue.Sooner(again, left)
		case len(due) < measuredAtOnce:
			due[uid] = m
		default:
			again = time.Millisecond
		}
	}
	for _, m := range due {
		live, err := c.core.CoreV1().Nodes().Get(ctx, m.node, metav1.GetOptions{})
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Cannot read the sizes of images", "node", m.node, "err", err)
		} else {
			m.sizes = sizesOn(live, m.images)
		}
		if len(m.sizes) < len(m.images) && now.Before(m.last) {
			m.next = now.Add(measureAgain)
			again = requeue.Sooner(again, measureAgain)
			continue
		}
		m.next = time.Time{}
		if m.fresh {
			for _, size := range m.sizes {
				c.metrics.pulled(size)
			}
		}
	}
	return again
}

// sizesOn returns how large images are on a Node, as far as it says so.
func sizesOn(node *corev1.Node, images []string) map[string]int64 {
	sizes := map[string]int64{}
	for _, one := range node.Status.Images {
		for _, image := range images {
			if slices.ContainsFunc(one.Names, func(name string) bool { return sameImage(name, image) }) {
				sizes[image] = one.SizeBytes
			}
		}
	}
	return sizes
}

// sameImage reports whether a Node's name of an image is that of a reference: a Node writes the registry and
// the tag in full, and no tag with a digest.
func sameImage(name, reference string) bool {
	path, digest, pinned := strings.Cut(reference, "@")
	switch tag := tagOf(path); {
	case pinned:
		reference = strings.TrimSuffix(path, tag) + "@" + digest
	case tag == "":
		reference += ":latest"
	}
	reference = strings.TrimPrefix(reference, "docker.io/")
	return name == reference || name == "docker.io/"+reference || name == "docker.io/library/"+reference
}

// tagOf returns the tag of an image with its colon; empty if there is none.
func tagOf(path string) string {
	if at := strings.LastIndexByte(path, ':'); at > strings.LastIndexByte(path, '/') {
		return path[at:]
	}
	return ""
}
