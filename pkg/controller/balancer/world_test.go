// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan/plantest"
)

const ns = "default"

var (
	balancerGVR   = v1alpha1.SchemeGroupVersion.WithResource("balancers")
	deploymentGVR = appsv1.SchemeGroupVersion.WithResource("deployments")
	podGVR        = corev1.SchemeGroupVersion.WithResource("pods")
	eventGVR      = corev1.SchemeGroupVersion.WithResource("events")
)

// served are the kinds of a cluster that has no machine-controller-manager.
var served = slices.Concat(sim.Core, sim.Workloads, []sim.Resource{
	{
		Group: v1alpha1.GroupName, Version: "v1alpha1", Name: "balancers", Kind: "Balancer", Namespaced: true, Status: true, Generation: true,
		Scale: &sim.Scale{SpecReplicas: "spec.replicas", StatusReplicas: "status.replicas", Selector: "status.selector"},
	},
	{
		Group: "example.org", Version: "v1", Name: "widgets", Kind: "Widget", Namespaced: true, Status: true, Generation: true,
		Scale: &sim.Scale{SpecReplicas: "spec.size", StatusReplicas: "status.size"},
	},
})

// controller is the program under test.
func controller(o Options) storm.Program { return watched(o, func(*Controller) {}) }

// watched shows the controller that it runs.
func watched(o Options, show func(*Controller)) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		config.QPS = -1
		core, ours := kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config)
		shared, balancers := informers.NewSharedInformerFactory(core, 0), externalversions.NewSharedInformerFactory(ours, 0)
		recorder := &scribe{core: core}
		c, err := New(
			Clients{Dynamic: dynamic.NewForConfigOrDie(config), Discovery: discovery.NewDiscoveryClientForConfigOrDie(config), Balancers: ours.BalancerV1alpha1()},
			Informers{Balancers: balancers.Balancer().V1alpha1().Balancers(), Pods: shared.Core().V1().Pods(), Autoscalers: shared.Autoscaling().V2().HorizontalPodAutoscalers()},
			recorder, o)
		if err != nil {
			return err
		}
		show(c)
		shared.StartWithContext(ctx)
		balancers.StartWithContext(ctx)
		defer shared.Shutdown()
		defer balancers.Shutdown()
		c.Run(ctx)
		return nil
	}
}

// scribe writes events at once, as a client like any other.
type scribe struct {
	record.EventRecorder
	core kubernetes.Interface
}

func (s *scribe) Event(object runtime.Object, kind, reason, message string) {
	b := object.(*v1alpha1.Balancer)
	_, _ = s.core.CoreV1().Events(b.Namespace).Create(context.Background(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: b.Name + "-", Namespace: b.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Balancer", Name: b.Name, Namespace: b.Namespace},
		Type:           kind, Reason: reason, Message: message,
	}, metav1.CreateOptions{})
}

func (s *scribe) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	s.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

// cluster is a simulated cluster with Deployments that run pods.
type cluster struct {
	*storm.World
	user *kubernetes.Clientset
	ours versioned.Interface

	mu sync.Mutex
	// out names Deployments whose pods do not start, quota how many pods one may have.
	out   map[string]bool
	quota map[string]int
	boot  time.Duration
	// stirs are the writes so far, Leases apart; done is how many there were when there was nothing left to do.
	stirs, done int
}

// stirred is how much has been written, and whether that is more than when there was nothing left to do.
func (c *cluster) stirred() (stirs int, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stirs, c.stirs != c.done
}

// stir counts a write that may leave something to do.
func (c *cluster) stir(w sim.Write) error {
	if w.Resource != "leases" && !w.NoOp() {
		c.set(func() { c.stirs++ })
	}
	return nil
}

func newCluster(o sim.Options) *cluster {
	if o.Resources == nil {
		o.Resources = served
	}
	w := storm.NewWorld(o)
	return adopt(w)
}

func adopt(w *storm.World) *cluster {
	c := still(w)
	w.AfterWrite(c.stir)
	w.Start("kubelet", c.kubelet)
	return c
}

// still is a cluster in which nobody makes pods.
func still(w *storm.World) *cluster {
	config := w.ConfigFor("user")
	config.QPS = -1
	return &cluster{World: w, user: kubernetes.NewForConfigOrDie(config), ours: versioned.NewForConfigOrDie(config), out: map[string]bool{}, quota: map[string]int{}, boot: 5 * time.Second}
}

func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = -1
	change()
}

// deploy makes a Deployment with pods labelled app=shop and run=<name>.
func (c *cluster) deploy(name string, replicas int32, change ...func(*appsv1.Deployment)) {
	labels := map[string]string{"app": "shop", "run": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}}
	d.Spec.Replicas, d.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: map[string]string{"run": name}}
	d.Spec.Template.Labels = labels
	for _, f := range change {
		f(d)
	}
	_, err := c.user.AppsV1().Deployments(ns).Create(context.Background(), d, metav1.CreateOptions{})
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
}

// balance makes a Balancer over Deployments named by targets.
func (c *cluster) balance(name string, replicas int32, policy v1alpha1.BalancerPolicy, targets ...string) {
	c.create(object(name, replicas, policy, targets...))
}

func object(name string, replicas int32, policy v1alpha1.BalancerPolicy, targets ...string) *v1alpha1.Balancer {
	b := &v1alpha1.Balancer{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}}
	b.Spec = v1alpha1.BalancerSpec{Replicas: &replicas, Policy: policy, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}}
	for _, t := range targets {
		b.Spec.Targets = append(b.Spec.Targets, plantest.Target(t))
	}
	return b
}

func (c *cluster) create(b *v1alpha1.Balancer) {
	_, err := c.ours.BalancerV1alpha1().Balancers(b.Namespace).Create(context.Background(), b, metav1.CreateOptions{})
	ExpectWithOffset(2, err).NotTo(HaveOccurred())
}

func (c *cluster) change(name string, change func(*v1alpha1.Balancer)) {
	ExpectWithOffset(1, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		b := c.balancer(name)
		change(b)
		_, err := c.ours.BalancerV1alpha1().Balancers(ns).Update(context.Background(), b, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
}

func (c *cluster) scale(name string, replicas int32) {
	c.change(name, func(b *v1alpha1.Balancer) { b.Spec.Replicas = &replicas })
}

func (c *cluster) balancer(name string) *v1alpha1.Balancer {
	b := &v1alpha1.Balancer{}
	raw := c.Get(balancerGVR, ns, name)
	ExpectWithOffset(1, raw).NotTo(BeNil())
	ExpectWithOffset(1, runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, b)).To(Succeed())
	return b
}

// sizes are the replicas asked of Deployments, as in 3/7.
func (c *cluster) sizes(names ...string) string {
	var words []string
	for _, name := range names {
		n, _, _ := unstructured.NestedInt64(c.Get(deploymentGVR, ns, name).Object, "spec", "replicas")
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, "/")
}

func (c *cluster) settle() {
	ExpectWithOffset(1, c.Settle(5*time.Minute, 12*time.Hour)).To(Succeed())
}

// writes are what the controller has written since a number of writes but for events and Leases, as "scale a" or "status shop".
func (c *cluster) writes(since int) []string {
	var all []string
	for _, w := range c.Writes()[since:] {
		if w.User == "balancer" && w.Resource != "events" && w.Resource != "leases" && !w.NoOp() {
			all = append(all, w.Subresource+" "+w.Name)
		}
	}
	return all
}

// events are the reasons of all events so far.
func (c *cluster) events() []string {
	var all []string
	for _, e := range c.Objects(eventGVR) {
		reason, _, _ := unstructured.NestedString(e.Object, "reason")
		all = append(all, reason)
	}
	return all
}

// condition of a Balancer, as in "False NoRoom".
func (c *cluster) condition(name, kind string) string {
	for _, condition := range c.balancer(name).Status.Conditions {
		if condition.Type == kind {
			return string(condition.Status) + " " + condition.Reason
		}
	}
	return "absent"
}

// message of a condition.
func (c *cluster) message(name, kind string) string {
	for _, condition := range c.balancer(name).Status.Conditions {
		if condition.Type == kind {
			return condition.Message
		}
	}
	return "absent"
}

// running is how many pods run.
func (c *cluster) running() int {
	n := 0
	for _, pod := range c.Objects(podGVR) {
		if phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase"); phase == "Running" {
			n++
		}
	}
	return n
}

var widgetGVR = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}

// widget makes an object whose number of replicas is called size.
func (c *cluster) widget(name string, size int64) {
	w := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"name": name}, "spec": map[string]any{"size": size},
	}}
	_, err := dynamic.NewForConfigOrDie(c.ConfigFor("user")).Resource(widgetGVR).Namespace(ns).Create(context.Background(), w, metav1.CreateOptions{})
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
}

func (c *cluster) size(widget string) int64 {
	n, _, _ := unstructured.NestedInt64(c.Get(widgetGVR, ns, widget).Object, "spec", "size")
	return n
}
