// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// bounds of the members' autoscalers, as in 1..5/-/1..5.
func (f *federation) bounds(name string) string {
	var words []string
	for _, c := range f.clusters {
		words = append(words, c.bounds(name))
	}
	return strings.Join(words, "/")
}

func (f *federation) maxima(name string) string {
	var words []string
	for _, c := range f.clusters {
		_, hi, _ := strings.Cut(c.bounds(name), "..")
		if hi == "" {
			hi = "-"
		}
		words = append(words, hi)
	}
	return strings.Join(words, "/")
}

func (c *cluster) bounds(name string) string {
	h := c.hpa(name)
	if h == nil {
		return "-"
	}
	return fmt.Sprintf("%d..%d", *h.Spec.MinReplicas, h.Spec.MaxReplicas)
}

func (c *cluster) hpa(name string) *autoscalingv2.HorizontalPodAutoscaler {
	raw := c.Get(hpaGVR, ns, name)
	if raw == nil {
		return nil
	}
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	ExpectWithOffset(1, runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, h)).To(Succeed())
	return h
}

// state of a cluster, as in "Used" or "Refused NameTaken".
func (f *federation) state(name, cluster string) string {
	for _, c := range f.object(name).Status.Clusters {
		if c.Name == cluster {
			return strings.TrimSpace(string(c.State) + " " + c.Reason)
		}
	}
	return "absent"
}

// condition of an object, as in "False Moving".
func (f *federation) condition(name, kind string) string {
	for _, c := range f.object(name).Status.Conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason
		}
	}
	return "absent"
}

// loads are what the members' metrics call for, of the workload of that name.
func (f *federation) loads(name string, n ...int64) {
	for i, load := range n {
		f.clusters[i].set(func(c *cluster) { c.load[name] = load })
	}
}

func (c *cluster) set(change func(*cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// settle waits until nothing has been written anywhere for a while.
func (f *federation) settle() {
	for range 200 {
		before := f.loud()
		time.Sleep(6 * time.Minute)
		if f.loud() == before {
			return
		}
	}
	ExpectWithOffset(1, false).To(BeTrue(), "it does not come to rest")
}

// loud is how many writes there were in all.
func (f *federation) loud() int {
	n := len(storm.Loud(f.Writes()))
	for _, c := range f.clusters {
		n += len(storm.Loud(c.Writes()))
	}
	return n
}

// ours are the controller's writes since some number of them, in members and in the hub.
func (f *federation) ours() []string {
	var all []string
	for _, w := range storm.Sent(f.Writes()) {
		if w.User == "federatedhpa" {
			all = append(all, "hub "+w.Subresource+" "+w.Name)
		}
	}
	for _, c := range f.clusters {
		for _, w := range storm.Sent(c.Writes()) {
			if w.User == "federatedhpa" {
				all = append(all, c.name+" "+w.Verb+" "+w.Resource)
			}
		}
	}
	return all
}

func (f *federation) events() []string {
	var all []string
	for _, e := range f.Objects(eventGVR) {
		reason, _ := e.Object["reason"].(string)
		all = append(all, reason)
	}
	return all
}

var widgetKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
