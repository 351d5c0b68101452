// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

type (
	federated = v1alpha1.FederatedHorizontalPodAutoscaler
	spec      = v1alpha1.FederatedHorizontalPodAutoscalerSpec
)

// shop is one object and its workload in each member, with a metric of its name.
type shop struct {
	name  string
	guard *guard
}

// newShop makes workloads with no load in all members, and the object over them.
func newShop(ctx context.Context, name string, lo, hi int32, change ...func(*spec)) *shop {
	GinkgoHelper()
	s := &shop{name: name}
	o := s.object(lo, hi, change...)
	for _, m := range members {
		m.metrics.set(name, 0)
		if o.Spec.Placement == nil {
			_, err := m.core.AppsV1().Deployments(namespace).Create(ctx, deployment(name), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
	}
	s.create(ctx, o)
	s.guard = watch(s, int64(hi))
	DeferCleanup(func(ctx context.Context) {
		s.guard.stop()
		s.remove(ctx)
		for _, m := range members {
			_ = m.core.AppsV1().Deployments(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		}
	})
	return s
}

func (s *shop) object(lo, hi int32, change ...func(*spec)) *federated {
	o := &federated{ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: namespace}}
	o.Spec = spec{
		ScaleTargetRef: v1alpha1.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: s.name},
		MinReplicas:    &lo, MaxReplicas: hi,
		Metrics:   []runtime.RawExtension{{Raw: fmt.Appendf(nil, `{"type":"External","external":{"metric":{"name":%q},"target":{"type":"AverageValue","averageValue":"1"}}}`, s.name)}},
		Behavior:  &runtime.RawExtension{Raw: []byte(`{"scaleUp":{"policies":[{"type":"Pods","value":100,"periodSeconds":1}]},"scaleDown":{"stabilizationWindowSeconds":0}}`)},
		Rebalance: &v1alpha1.Rebalance{CooldownSeconds: ptr.To[int32](cooldown)},
	}
	for _, f := range change {
		f(&o.Spec)
	}
	return o
}

func atLeastOne(s *spec) { s.MinPolicy = v1alpha1.AtLeastOne }

func (s *shop) create(ctx context.Context, o *federated) {
	GinkgoHelper()
	_, err := hubOurs.AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(namespace).Create(ctx, o, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (s *shop) remove(ctx context.Context) {
	GinkgoHelper()
	client := hubOurs.AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(namespace)
	Expect(client.Delete(ctx, s.name, metav1.DeleteOptions{})).To(Or(Succeed(), Satisfy(apierrors.IsNotFound)))
	Eventually(func() bool {
		_, err := client.Get(ctx, s.name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}).Should(BeTrue(), "the object is deleted once its autoscalers are")
}

func (s *shop) get(ctx context.Context) *federated {
	GinkgoHelper()
	o, err := hubOurs.AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(namespace).Get(ctx, s.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return o
}

func (s *shop) change(ctx context.Context, change func(*spec)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o := s.get(ctx)
		change(&o.Spec)
		_, err := hubOurs.AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(namespace).Update(ctx, o, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
}

// condition, as in "True Moving".
func (s *shop) condition(ctx context.Context, kind string) func() string {
	return func() string {
		c := meta.FindStatusCondition(s.get(ctx).Status.Conditions, kind)
		if c == nil {
			return "absent"
		}
		return string(c.Status) + " " + c.Reason
	}
}

// state of a cluster, as in "Used" or "Refused NameTaken".
func (s *shop) state(ctx context.Context, cluster string) func() string {
	return func() string {
		for _, c := range s.get(ctx).Status.Clusters {
			if c.Name == cluster {
				return strings.TrimSpace(string(c.State) + " " + c.Reason)
			}
		}
		return "absent"
	}
}

// moves of bounds that the object tells of, as in "c1: from 1..10 to 1..24".
func (s *shop) moves(ctx context.Context) []string {
	GinkgoHelper()
	all, err := hubCore.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Moved,involvedObject.name=" + s.name})
	Expect(err).NotTo(HaveOccurred())
	var moves []string
	for i := range all.Items {
		moves = append(moves, all.Items[i].Message)
	}
	return moves
}

// load is how many replicas each member needs from now on.
func (s *shop) load(replicas ...int64) {
	for i, n := range replicas {
		members[i].metrics.set(s.name, n)
	}
}

// bounds are those of the members' autoscalers, as in 1..24/1..3/-.
func (s *shop) bounds(ctx context.Context) func() string {
	return s.written(ctx, func(h *autoscalingv2.HorizontalPodAutoscaler) string {
		return fmt.Sprintf("%d..%d", *h.Spec.MinReplicas, h.Spec.MaxReplicas)
	})
}

// maxima are the upper ones alone.
func (s *shop) maxima(ctx context.Context) func() string {
	return s.written(ctx, func(h *autoscalingv2.HorizontalPodAutoscaler) string { return fmt.Sprint(h.Spec.MaxReplicas) })
}

func (s *shop) written(ctx context.Context, say func(*autoscalingv2.HorizontalPodAutoscaler) string) func() string {
	return func() string {
		var words []string
		for _, m := range members {
			words = append(words, m.say(ctx, s.name, say))
		}
		return strings.Join(words, "/")
	}
}

func (m *member) say(ctx context.Context, name string, say func(*autoscalingv2.HorizontalPodAutoscaler) string) string {
	if m.paused {
		return "?"
	}
	h, err := m.core.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "-"
	case err != nil:
		return err.Error()
	}
	return say(h)
}

// replicas are those that the members' workloads have ready.
func (s *shop) replicas(ctx context.Context) func() string {
	return func() string {
		var words []string
		for _, m := range members {
			words = append(words, m.ready(ctx, s.name))
		}
		return strings.Join(words, "/")
	}
}

func (m *member) ready(ctx context.Context, name string) string {
	if m.paused {
		return "?"
	}
	d, err := m.core.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "-"
	case err != nil:
		return err.Error()
	}
	return fmt.Sprint(d.Status.ReadyReplicas)
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	d.Spec.Replicas, d.Spec.Selector = ptr.To[int32](1), &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "work", Image: "registry.example/work:1"}}
	return d
}

// guard looks at the members all the time, and remembers the highest sum of maxima that it saw. A sum counts only if nothing
// has changed while it was read.
type guard struct {
	cancel context.CancelFunc
	ended  chan struct{}
	limit  int64

	mu    sync.Mutex
	worst int64
	reads int
}

func watch(s *shop, limit int64) *guard {
	ctx, cancel := context.WithCancel(context.Background())
	g := &guard{cancel: cancel, ended: make(chan struct{}), limit: limit}
	go func() {
		defer close(g.ended)
		for ctx.Err() == nil {
			one, versions := s.sum(ctx)
			two, again := s.sum(ctx)
			if one == two && slices.Equal(versions, again) {
				g.mu.Lock()
				g.worst, g.reads = max(g.worst, one), g.reads+1
				g.mu.Unlock()
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return g
}

// sum of the maxima. A member that does not answer has what it had.
func (s *shop) sum(ctx context.Context) (sum int64, versions []string) {
	for _, m := range members {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		h, err := m.core.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, s.name, metav1.GetOptions{})
		cancel()
		if err == nil {
			sum, versions = sum+int64(h.Spec.MaxReplicas), append(versions, h.ResourceVersion)
		}
	}
	return sum, versions
}

// held wants that the sum was never above the limit, in some reads at least: a quick story may be over before them.
func (g *guard) held() {
	GinkgoHelper()
	Eventually(func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.reads
	}).Should(BeNumerically(">", 3))
	g.mu.Lock()
	defer g.mu.Unlock()
	AddReportEntry("highest sum of maxima", fmt.Sprintf("%d of %d, in %d reads", g.worst, g.limit, g.reads))
	Expect(g.worst).To(BeNumerically("<=", g.limit))
}

func (g *guard) stop() {
	g.cancel()
	<-g.ended
}
