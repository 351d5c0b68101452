// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var rolloutGVR = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "rollouts"}

// rollout makes a workload of a custom kind, which runs pods with a label.
func (c *cluster) rollout(name string, replicas int64) {
	GinkgoHelper()
	c.rolloutIn(Shop, name, replicas)
}

func (c *cluster) rolloutIn(namespace, name string, replicas int64) {
	GinkgoHelper()
	rollouts := c.rollouts(namespace)
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Rollout", "metadata": map[string]any{"name": name}, "spec": map[string]any{"replicas": replicas},
	}}
	o, err := rollouts.Create(context.Background(), o, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(unstructured.SetNestedField(o.Object, "app="+name, "status", "selector")).To(Succeed())
	_, err = rollouts.UpdateStatus(context.Background(), o, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (c *cluster) rollouts(namespace string) dynamic.ResourceInterface {
	return dynamic.NewForConfigOrDie(storm.Target(c.ConfigFor("user"))).Resource(rolloutGVR).Namespace(namespace)
}

// selects has a workload of a custom kind select other pods.
func (c *cluster) selects(name, selector string) {
	GinkgoHelper()
	_, err := c.rollouts(Shop).Patch(context.Background(), name, types.MergePatchType, fmt.Appendf(nil, `{"status":{"selector":%q}}`, selector), metav1.PatchOptions{}, "status")
	Expect(err).NotTo(HaveOccurred())
}

// runs makes a pod of a workload.
func (c *cluster) runs(app, name, requests string, change ...func(*corev1.Pod)) {
	GinkgoHelper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: name, Labels: map[string]string{"app": app}}, Spec: PodSpec(requests)}
	for _, f := range change {
		f(p)
	}
	_, err := c.core.CoreV1().Pods(p.Namespace).Create(context.Background(), p, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func ofRollout(name string) *v1beta1.CapacityBuffer { return ofKind(name, "example.com", "Rollout") }

func ofKind(name, group, kind string) *v1beta1.CapacityBuffer {
	return NewBuffer(name, fmt.Sprintf("{scalableRef: {apiGroup: %q, kind: %s, name: web}, percentage: 20, replicas: 1}", group, kind)).Object
}

// why is the reason for which the shape of a buffer is known or not.
func (c *cluster) why(name string) string {
	GinkgoHelper()
	return meta.FindStatusCondition(c.buffer(name).Status.Conditions, v1beta1.ConditionReadyForProvisioning).Reason
}

// later shows the kind of rollouts from a moment on.
type later struct {
	http.RoundTripper
	from time.Time
}

func (l later) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/apis/example.com") && time.Now().Before(l.from) {
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
	}
	return l.RoundTripper.RoundTrip(r)
}

// withRollout plays body on a cluster that has a workload of a custom kind with a pod.
func withRollout(body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := newCluster(sim.Options{Seed: 1})
		defer c.End()
		c.pool("a", 20)
		c.rollout("web", 10)
		c.runs("web", "p", "cpu=1")
		body(c)
	})
}

var _ = Describe("A workload of a kind that is not known", func() {
	It("has chunks like its newest pod, by its scale", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 20)
			c.rollout("web", 10)
			c.runs("web", "old", "cpu=1")
			c.runs("other", "x", "cpu=4")
			c.create(ofRollout("b"))
			c.Start("buffers", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(Standing(c.buffer("b"))).To(Equal("2 Provisioning=FitsExistingCapacity Ready=Complete"))
			Expect(c.requested()).To(Equal("a=1"))

			time.Sleep(time.Second)
			c.runs("web", "new", "cpu=3")
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=2"), "two machines for two chunks")
			world.Delete(c.core.CoreV1().Pods(Shop), "new")
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=1"))
		})
	})

	It("has chunks as soon as its first pod exists, though its scale stays as it is", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 20)
			c.rollout("web", 10)
			c.startWith(ofRollout("b"))
			Expect(c.why("b")).To(Equal(reason.PodNotFound))
			c.runs("other", "x", "cpu=1")
			c.runs("web", "p", "cpu=1")
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(Standing(c.buffer("b"))).To(Equal("2 Provisioning=FitsExistingCapacity Ready=Complete"))
		})
	})

	It("is read before anything is decided, so that nothing changes when the controller starts again", func() {
		withRollout(func(c *cluster) {
			c.create(ofRollout("b"))
			process := c.Start("buffers", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			before := len(c.Writes())
			process.CrashFor(time.Second)
			time.Sleep(time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
		})
	})

	DescribeTable("says what is missing",
		func(group, kind, want string, change func(c *cluster)) {
			storm.Bubble(suite, func() {
				c := newCluster(sim.Options{Seed: 1})
				defer c.End()
				c.pool("a", 20)
				c.rollout("web", 10)
				change(c)
				b := ofKind("b", group, kind)
				b.Annotations = map[string]string{v1beta1.DedicatedAnnotation: "workload"}
				c.create(b)
				c.Start("buffers", controller)
				Expect(c.Settle(2*time.Minute, time.Hour)).To(Succeed())
				Expect(c.why("b")).To(Equal(want))
				Expect(c.requested()).To(Equal("a=-"))
			})
		},
		Entry("a pod", "example.com", "Rollout", reason.PodNotFound, func(*cluster) {}),
		Entry("the kind", "example.com", "Nothing", reason.KindNotSupported, func(*cluster) {}),
		Entry("a scale", "", "PodTemplate", reason.WorkloadUnread, func(*cluster) {}),
		Entry("the right", "example.com", "Rollout", reason.RightMissing, func(c *cluster) {
			c.Target.Trouble("rollouts", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "buffers")
		}),
		Entry("a controller that makes them its pods", "example.com", "Rollout", reason.DedicationInvalid, func(c *cluster) { c.runs("web", "p", "cpu=1") }),
	)

	It("has chunks, however many workloads the buffers of another namespace name (law 8)", func() {
		withRollout(func(c *cluster) {
			for i := range 100 {
				many := NewBuffer(fmt.Sprintf("b%d", i), fmt.Sprintf("{scalableRef: {apiGroup: example.com, kind: Rollout, name: w%d}, replicas: 1}", i)).Object
				many.Namespace = "another"
				world.Create(c.ours.CapacityBufferV1beta1().CapacityBuffers(many.Namespace), many)
			}
			c.create(ofRollout("b"))
			c.Start("buffers", controller)
			Expect(c.Settle(2*time.Minute, time.Hour)).To(Succeed())
			Expect(Standing(c.buffer("b"))).To(Equal("2 Provisioning=FitsExistingCapacity Ready=Complete"))
		})
	})

	It("has chunks by its own scale, whatever another namespace has of the same name", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 20)
			for namespace, replicas := range map[string]int64{Shop: 10, "another": 30} {
				c.rolloutIn(namespace, "web", replicas)
				c.runs("web", "p", "cpu=1", func(p *corev1.Pod) { p.Namespace = namespace })
				b := ofRollout("b")
				b.Namespace = namespace
				world.Create(c.ours.CapacityBufferV1beta1().CapacityBuffers(namespace), b)
			}
			c.Start("buffers", controller)
			Expect(c.Settle(2*time.Minute, time.Hour)).To(Succeed())
			for namespace, chunks := range map[string]int{Shop: 2, "another": 6} {
				Expect(Standing(world.Stored[v1beta1.CapacityBuffer](c, bufferGVR, namespace, "b"))).To(HavePrefix(fmt.Sprint(chunks, " ")), namespace)
			}
		})
	})

	It("has chunks like the pods that it selects now, also if their number stays", func() {
		withRollout(func(c *cluster) {
			c.runs("next", "q", "cpu=3")
			c.startWith(ofRollout("b"))
			Expect(c.requested()).To(Equal("a=1"))
			c.selects("web", "app=next")
			time.Sleep(2 * time.Minute)
			Expect(c.requested()).To(Equal("a=2"), "two machines for two chunks")
		})
	})

	It("is read as soon as a buffer names it", func() {
		withRollout(func(c *cluster) {
			c.Start("buffers", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			time.Sleep(10 * time.Second) // it is not the time to read scales
			c.create(ofRollout("b"))
			time.Sleep(5 * time.Second)
			Expect(c.buffer("b").Status.Replicas).To(HaveValue(BeEquivalentTo(2)))
		})
	})

	It("does not keep others from their chunks when it is not answered for", func() {
		withRollout(func(c *cluster) {
			c.deploy("web", 10)
			c.create(ofRollout("b"))
			c.create(percent("other", "web", 20))
			c.Target.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.Resource == "rollouts" && r.Verb == "get" {
					return time.Hour, 0
				}
				return 0, 0
			})
			c.Start("buffers", controller)
			time.Sleep(2 * time.Minute)
			Expect(Standing(c.buffer("other"))).To(HaveSuffix("Ready=Complete"))
		})
	})

	It("is found once the cluster serves its kind", func() {
		withRollout(func(c *cluster) {
			c.create(ofRollout("b"))
			served := time.Now().Add(time.Hour)
			c.Start("buffers", func(ctx context.Context, config *rest.Config) error {
				config.Wrap(func(next http.RoundTripper) http.RoundTripper { return later{next, served} })
				return controller(ctx, config)
			})
			time.Sleep(30 * time.Minute)
			Expect(c.why("b")).To(Equal(reason.KindNotSupported))
			time.Sleep(41 * time.Minute)
			Expect(c.requested()).To(Equal("a=1"))
		})
	})

	It("has no chunks any longer when it is deleted", func() {
		withRollout(func(c *cluster) {
			c.startWith(ofRollout("b"))
			Expect(c.requested()).To(Equal("a=1"))
			Expect(c.rollouts(Shop).Delete(context.Background(), "web", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(2 * time.Minute)
			Expect(c.why("b")).To(Equal(reason.WorkloadNotFound))
		})
	})

	It("is dedicated by the controller of its pods", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 20)
			c.rollout("web", 10)
			c.runs("web", "p", "cpu=1", func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Rollout", Name: "web", UID: "web", Controller: ptr.To(true)}}
			})
			b := ofRollout("b")
			b.Annotations = map[string]string{v1beta1.DedicatedAnnotation: "workload"}
			c.create(b)
			c.Start("buffers", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.Objects(reserveGVR)[0].GetAnnotations()).To(HaveKeyWithValue(v1beta1.DedicatedAnnotation, "shop/Rollout/web=1"))
		})
	})

	It("is not known any longer once the right to read it is missing, and its machines stay", func() {
		withRollout(func(c *cluster) {
			c.create(ofRollout("b"))
			c.Start("buffers", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			for _, at := range []struct {
				trouble sim.Trouble
				reason  string
			}{{sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, reason.RightMissing}, {sim.Trouble{}, reason.AttributesSetSuccessfully}} {
				c.Target.Trouble("rollouts", at.trouble, "buffers")
				time.Sleep(2 * time.Minute)
				Expect(c.why("b")).To(Equal(at.reason))
				Expect(c.requested()).To(Equal("a=1"))
			}
		})
	})

	It("holds no more machines than it had chunks while it cannot be read (law 8)", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 20)
			c.deploy("web", 40)
			c.rollout("web", 5)
			c.runs("web", "p", "cpu=3")
			c.create(percent("big", "web", 50))
			c.create(ofRollout("b"))
			process := c.Start("buffers", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=11"), "20 chunks of two CPUs, and one of three")
			c.Target.Trouble("rollouts", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "buffers")
			process.CrashFor(time.Second)
			c.remove("big")
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=1"))
			Expect(*c.buffer("b").Status.Replicas).To(BeEquivalentTo(1))
		})
	})
})
