// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("What is wrong with one", func() {
	It("leaves a target alone that is missing, another's, mislabelled or not scalable, and serves the others", func() {
		play(func(c *cluster) {
			c.deploy("a", 1)
			c.deploy("b", 1, func(d *appsv1.Deployment) { d.Spec.Template.Labels = map[string]string{"run": "b"} })
			c.deploy("d", 1)
			_, err := c.user.AutoscalingV2().HorizontalPodAutoscalers(ns).Create(context.Background(), &autoscalingv2.HorizontalPodAutoscaler{
				ObjectMeta: metav1.ObjectMeta{Name: "forgotten", Namespace: ns},
				Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 5, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"}},
			}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(10 * time.Second)
			b := object("shop", 12, builders.Even(), "a", "b", "c", "d", "e", "f", "g")
			b.Spec.Policy.Fallback = nil
			b.Spec.Targets[4].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "e"}
			b.Spec.Targets[5].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Pod", Name: "f"}
			b.Spec.Targets[6].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "g"}
			c.create(b)
			c.Start("balancer", controller(Options{Kinds: append([]schema.GroupKind{{Group: "apps", Kind: "DaemonSet"}, {Group: "apps", Kind: "Pod"}}, DefaultKinds...)}))
			c.settle()
			reasons := map[string]string{}
			for _, t := range c.balancer("shop").Status.Targets {
				reasons[t.Name] = t.Reason
			}
			Expect(reasons).To(Equal(map[string]string{"a": "", "b": "LabelsDiffer", "c": "NotFound", "d": "Autoscaled", "e": "NotScalable", "f": "NoSuchKind", "g": "KindNotAllowed"}))
			Expect(c.sizes("b", "d")).To(Equal("1/1"))
			Expect(c.sizes("a")).To(Equal("2"), "12 less one each in b and d, over five")
			Expect(c.condition("shop", "Ready")).To(Equal("False TargetsUnresolved"))
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("False LabelsDiffer"))
			Expect(c.condition("shop", "Balancing")).To(Equal("False PodLabelsChecking"))

			c.deploy("c", 0)
			time.Sleep(time.Second)
			Expect(c.sizes("c")).To(Equal("2"))
		})
	})

	It("lets the oldest of two Balancers have a target, and the next one when that is gone", func() {
		play(func(c *cluster) {
			c.deploy("a", 1)
			c.deploy("b", 1)
			c.deploy("c", 1)
			c.balance("old", 10, builders.Even(), "a", "b")
			time.Sleep(2 * time.Second)
			c.balance("new", 4, builders.Even(), "b", "c")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.sizes("a", "b", "c")).To(Equal("5/5/1"))
			Expect(c.condition("new", "Ready")).To(Equal("False Conflict"))
			Expect(c.condition("old", "Ready")).To(Equal("True UnderControl"))
			Expect(c.ours.BalancerV1alpha1().Balancers(ns).Delete(context.Background(), "old", metav1.DeleteOptions{})).To(Succeed())
			c.settle()
			Expect(c.sizes("a", "b", "c")).To(Equal("5/2/2"))
			Expect(c.condition("new", "Ready")).To(Equal("True UnderControl"))
		})
	})

	It("leaves a target to the next one when it no longer names it", func() {
		play(func(c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.deploy(name, 1)
			}
			c.balance("old", 4, builders.Even(), "a", "b")
			time.Sleep(2 * time.Second)
			c.balance("new", 4, builders.Even(), "b", "c")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("new", "Ready")).To(Equal("False Conflict"))
			c.change("old", func(b *v1alpha1.Balancer) { b.Spec.Targets, b.Spec.Replicas = b.Spec.Targets[:1], ptr.To[int32](2) })
			c.settle()
			Expect(c.condition("new", "Ready")).To(Equal("True UnderControl"))
			Expect(c.sizes("a", "b", "c")).To(Equal("2/2/2"))
		})
	})

	It("scales nothing while it waits for its deletion, and leaves its targets to the next one", func() {
		play(func(c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.deploy(name, 1)
			}
			old := object("old", 10, builders.Even(), "a", "b")
			old.Finalizers = []string{"example.org/stay"}
			c.create(old)
			time.Sleep(2 * time.Second)
			c.balance("new", 4, builders.Even(), "b", "c")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.sizes("a", "b", "c")).To(Equal("5/5/1"))
			world.Delete(c.ours.BalancerV1alpha1().Balancers(ns), "old")
			c.scale("old", 20)
			c.settle()
			Expect(c.condition("new", "Ready")).To(Equal("True UnderControl"))
			Expect(c.sizes("a", "b", "c")).To(Equal("5/2/2"))
		})
	})

	It("has a target alone, by its name, if another one is as old", func() {
		play(func(c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.deploy(name, 1)
			}
			c.balance("y", 4, builders.Even(), "b", "c")
			c.balance("x", 10, builders.Even(), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("x", "Ready")).To(Equal("True UnderControl"))
			Expect(c.condition("y", "Ready")).To(Equal("False Conflict"))
			Expect(c.sizes("a", "b", "c")).To(Equal("5/5/1"))
		})
	})

	It("has nothing to do with one of the same names in another namespace", func() {
		play(func(c *cluster) {
			elsewhere := func(d *appsv1.Deployment) { d.Namespace = "other" }
			for _, name := range []string{"a", "b"} {
				c.deploy(name, 4, elsewhere)
				c.deploy(name, 4)
			}
			other := object("shop", 8, builders.Even(), "a", "b")
			other.Namespace = "other"
			c.create(other)
			time.Sleep(2 * time.Second)
			c.balance("shop", 8, builders.Even(), "a", "b")
			c.OnWrite(func(w sim.Write) error {
				if w.Namespace == "other" && w.Name == "b" && w.Subresource == "scale" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "b", nil)
				}
				return nil
			})
			c.Start("balancer", controller(Options{}))
			c.settle()
			world.Change(c.ours.BalancerV1alpha1().Balancers("other"), "shop", func(b *v1alpha1.Balancer) { b.Spec.Replicas = ptr.To[int32](4) })
			time.Sleep(time.Second)
			c.scale("shop", 4)
			c.settle()
			Expect(c.condition("shop", "Ready")).To(Equal("True UnderControl"))
			Expect(c.sizes("a", "b")).To(Equal("2/2"))
		})
	})

	It("holds up no younger Balancer of the same target while it is invalid", func() {
		play(func(c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.deploy(name, 1)
			}
			old := object("old", 10, builders.Even(), "a", "b")
			right := old.Spec.Targets[1].ScaleTargetRef
			old.Spec.Targets[1].ScaleTargetRef = old.Spec.Targets[0].ScaleTargetRef
			c.create(old)
			time.Sleep(2 * time.Second)
			c.balance("new", 4, builders.Even(), "a", "c")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("old", "Ready")).To(Equal("False Invalid"))
			Expect(c.condition("new", "Ready")).To(Equal("True UnderControl"))
			Expect(c.sizes("a", "b", "c")).To(Equal("2/1/2"))
			old = c.balancer("old")
			old.Spec.Targets[1].ScaleTargetRef = right
			_, err := c.ours.BalancerV1alpha1().Balancers(ns).Update(context.Background(), old, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			Expect(c.condition("new", "Ready")).To(Equal("False Conflict"))
			Expect(c.sizes("a", "b", "c")).To(Equal("5/5/2"))
		})
	})

	It("holds up no third: a Balancer that stands back for an older one leaves its other targets to younger ones", func() {
		play(func(c *cluster) {
			for _, name := range []string{"a", "b", "c", "d"} {
				c.deploy(name, 1)
			}
			for i, targets := range [][]string{{"a", "b"}, {"b", "c"}, {"c", "d"}} {
				c.balance([]string{"old", "middle", "young"}[i], 4, builders.Even(), targets...)
				time.Sleep(2 * time.Second)
			}
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.sizes("a", "b", "c", "d")).To(Equal("2/2/2/2"))
			Expect(c.condition("middle", "Ready")).To(Equal("False Conflict"))
			Expect(c.condition("young", "Ready")).To(Equal("True UnderControl"))
			Expect(c.ours.BalancerV1alpha1().Balancers(ns).Delete(context.Background(), "old", metav1.DeleteOptions{})).To(Succeed())
			c.scale("middle", 8)
			c.settle()
			Expect(c.sizes("a", "b", "c", "d")).To(Equal("2/4/4/2"))
			Expect(c.condition("young", "Ready")).To(Equal("False Conflict"))
			Expect(c.message("young", "Ready")).To(ContainSubstring("middle"))
		})
	})

	It("is not held up by a target that refuses to be scaled, tries it again, and does not flap", func() {
		play(func(c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.deploy(name, 4)
			}
			c.balance("shop", 12, builders.Even(), "a", "b", "c")
			registry := prometheus.NewRegistry()
			c.Start("balancer", controller(Options{Registerer: registry}))
			c.settle()
			var denied atomic.Bool
			denied.Store(true)
			c.OnWrite(func(w sim.Write) error {
				if denied.Load() && w.Name == "b" && w.Subresource == "scale" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "b", nil)
				}
				return nil
			})
			c.scale("shop", 6)
			c.settle()
			Expect(c.sizes("a", "b", "c")).To(Equal("1/4/1"))
			Expect(c.condition("shop", "Balancing")).To(Equal("False ReplicaCountSetting"))
			before := len(c.Writes())
			time.Sleep(10 * time.Minute)
			Expect(c.writes(before)).To(BeEmpty())
			Expect(metrics(registry)).To(HaveKeyWithValue("evenkeel_balancer_writes_total error retry", BeNumerically(">=", 3)), "after 1, 3 and 7 minutes")
			denied.Store(false)
			time.Sleep(time.Hour)
			Expect(c.sizes("a", "b", "c")).To(Equal("2/2/2"))
			Expect(c.condition("shop", "Balancing")).To(Equal("True Completed"))
		})
	})

	It("is not delayed by an earlier target of the same name that refused to be scaled, even if its deletion was missed", func() {
		play(func(c *cluster) {
			c.deploy("a", 4)
			c.deploy("b", 4)
			c.balance("shop", 8, builders.Even(), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			var allowed atomic.Bool
			c.OnWrite(func(w sim.Write) error {
				if !allowed.Load() && w.Name == "b" && w.Subresource == "scale" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "b", nil)
				}
				return nil
			})
			c.scale("shop", 4)
			time.Sleep(8 * time.Minute) // the next try comes seven minutes later
			Expect(c.sizes("a", "b")).To(Equal("0/4"))
			c.Down(true, "balancer")
			world.Delete(c.user.AppsV1().Deployments(ns), "b")
			c.Compact()
			c.Down(false, "balancer")
			time.Sleep(time.Minute)
			allowed.Store(true)
			c.deploy("b", 0)
			time.Sleep(time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("2/2"))
		})
	})

	It("is not held up by a target whose webhook fails once it is tried again after a refusal", func() {
		play(func(c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.deploy(name, 4)
			}
			c.balance("shop", 12, builders.Even(), "a", "b", "c")
			c.Start("balancer", controller(Options{}))
			c.settle()
			var down atomic.Bool
			c.OnWrite(func(w sim.Write) error {
				switch {
				case w.Name != "b" || w.Subresource != "scale":
					return nil
				case down.Load():
					return apierrors.NewInternalError(errors.New("failed calling webhook"))
				}
				return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "b", nil)
			})
			c.scale("shop", 6)
			c.settle()
			Expect(c.sizes("a", "b", "c")).To(Equal("1/4/1"))
			down.Store(true)
			time.Sleep(10 * time.Minute)
			c.scale("shop", 10)
			time.Sleep(10 * time.Minute)
			Expect(c.sizes("a", "b", "c")).To(Equal("3/4/3"))
			c.scale("shop", 6)
			time.Sleep(10 * time.Minute)
			Expect(c.sizes("a", "b", "c")).To(Equal("1/4/1"))
		})
	})

	It("moves the replicas of others more and more rarely where a policy refuses some numbers of a target and takes others", func() {
		play(func(c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.deploy(name, 4)
			}
			c.balance("shop", 12, builders.Even(), "a", "b", "c")
			c.Start("balancer", controller(Options{}))
			c.settle()
			c.Admit(func(a sim.Admission) error {
				if n, _, _ := unstructured.NestedInt64(a.Object.Object, "spec", "replicas"); a.Object.GetKind() == "Deployment" && a.Object.GetName() == "b" && n < 3 {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "b", nil)
				}
				return nil
			})
			c.scale("shop", 6)
			time.Sleep(10 * time.Minute)
			before := len(c.Writes())
			time.Sleep(10 * time.Hour)
			Expect(len(c.writes(before))).To(BeNumerically("<", 200), "once an hour in the end")
			c.scale("shop", 9)
			time.Sleep(2 * time.Hour)
			Expect(c.sizes("a", "b", "c")).To(Equal("3/3/3"))
			Expect(c.condition("shop", "Balancing")).To(Equal("True Completed"))
		})
	})

	It("reports what is wrong with an object that validation has not rejected", func() {
		play(func(c *cluster) {
			c.deploy("a", 1)
			c.deploy("b", 1)
			bad := object("bad", 10, v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Priority}, "x", "y")
			bad.Spec.Selector = metav1.LabelSelector{}
			c.create(bad)
			c.balance("good", 10, builders.Even(), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("bad", "Ready")).To(Equal("False Invalid"))
			Expect(c.condition("bad", "Balancing")).To(Equal("False ApplyingBalancerPolicy"))
			Expect(c.balancer("bad").Status.Selector).To(BeEmpty())
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
		})
	})

	It("reports a fault of the controller itself, which leaves the others alone", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			c.balance("bad", 1, builders.Even(), "a")
			c.balance("good", 1, builders.Even(), "b")
			c.Start("balancer", allowed(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					if strings.HasSuffix(r.URL.Path, "/a/scale") {
						panic("fault")
					}
					return next.RoundTrip(r)
				})
			}))
			time.Sleep(30 * time.Second)
			Expect(c.sizes("a", "b")).To(Equal("0/1"))
			Expect(c.events()).To(ConsistOf("UnableToBalance", "Scaled"))
		})
	})

	It("looks at no more targets than a Balancer may have, where no door has refused thousands", func() {
		play(func(c *cluster) {
			c.deploy("a", 1)
			names := []string{"a"}
			for i := range 3000 {
				names = append(names, fmt.Sprint("t", i))
			}
			c.balance("large", 10, builders.Even(), names...)
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("large", "Ready")).To(Equal("False Invalid"))
			Expect(c.sizes("a")).To(Equal("1"))
			Expect(len(c.balancer("large").Status.Targets)).To(BeNumerically("<=", 257))
		})
	})

	It("looks at no pods of other namespaces", func() {
		play(func(c *cluster) {
			c.deploy("a", 1)
			c.deploy("b", 1)
			_, err := c.user.CoreV1().Pods("other").Create(context.Background(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "stranger", Namespace: "other", Labels: map[string]string{"app": "shop"}},
			}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			b := object("shop", 2, builders.Even(), "a", "b")
			b.Spec.Selector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}
			c.create(b)
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("True Resolved"))
			Expect(c.balancer("shop").Status.Selector).To(Equal("app"))
		})
	})

	It("notices pods that an autoscaler would count though no target has them", func() {
		play(func(c *cluster) {
			c.deploy("a", 1)
			c.deploy("b", 1)
			c.deploy("foreign", 2)
			c.pod("finished", corev1.PodSucceeded)
			c.balance("shop", 4, builders.Even(), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("False ForeignPods"))
			Expect(c.sizes("a", "b")).To(Equal("2/2"))

			for _, pod := range world.List[corev1.Pod](c, podGVR) {
				if pod.Labels["run"] == "foreign" {
					world.Change(c.user.CoreV1().Pods(ns), pod.Name, func(p *corev1.Pod) { delete(p.Labels, "app") })
				}
			}
			c.settle()
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("True Resolved"))
		})
	})

	It("takes pods of a target whose status is observed for no foreign ones", func() {
		play(func(c *cluster) {
			c.deploy("a", 1)
			c.deploy("b", 1)
			b := object("shop", 4, builders.Even(), "a", "b")
			b.Spec.Targets[1].Observer = v1alpha1.StatusObserver
			c.create(b)
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("True Resolved"))
			Expect(c.sizes("a", "b")).To(Equal("2/2"))
		})
	})
})

// forbidden refuses the controller whatever has this in its path.
func forbidden(part string) func(http.RoundTripper) http.RoundTripper {
	return refusing(func(path string) bool { return strings.Contains(path, part) }, http.StatusForbidden, metav1.StatusReasonForbidden)
}

// refusing answers requests for some paths with an error.
func refusing(what func(path string) bool, code int, reason metav1.StatusReason) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if !what(r.URL.Path) {
				return next.RoundTrip(r)
			}
			body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
			return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
