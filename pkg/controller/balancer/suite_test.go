// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/workloads"
	workloadinformers "github.com/evenkeel/evenkeel/pkg/client/informers/workloads"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var suite *testing.T

func TestBalancer(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Balancer")
}

// play runs body on a cluster in virtual time.
func play(body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := newCluster(sim.Options{Seed: 1})
		defer c.End()
		body(c)
	})
}

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

func clients(config *rest.Config) (kubernetes.Interface, workloads.Interface) {
	return kubernetes.NewForConfigOrDie(config), workloads.NewForConfigOrDie(config)
}

// controller is the program under test.
func controller(o Options) storm.Program { return watched(o, func(*Controller) {}) }

// watched shows the controller that it runs.
func watched(o Options, show func(*Controller)) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		core, ours := clients(config)
		shared, balancers := informers.NewSharedInformerFactory(core, 0), workloadinformers.NewSharedInformerFactory(ours, 0)
		c, err := New(
			Clients{Dynamic: dynamic.NewForConfigOrDie(config), Discovery: discovery.NewDiscoveryClientForConfigOrDie(config), Balancers: ours.BalancerV1alpha1()},
			Informers{Balancers: balancers.Balancer().V1alpha1().Balancers(), Pods: shared.Core().V1().Pods(), Autoscalers: shared.Autoscaling().V2().HorizontalPodAutoscalers(), Nodes: shared.Core().V1().Nodes()},
			&world.Recorder{Core: core}, o)
		if err != nil {
			return err
		}
		show(c)
		world.Process{Informers: []world.Informers{world.InformersOf(shared), world.InformersOf(balancers)}}.Run(ctx, c.Run)
		return nil
	}
}

// cluster is a simulated cluster with Deployments that run pods.
type cluster struct {
	*storm.World
	*world.Waker
	user kubernetes.Interface
	ours workloads.Interface

	// out names Deployments whose pods do not start, quota how many pods one may have.
	out   map[string]bool
	quota map[string]int
	boot  time.Duration
}

func newCluster(o sim.Options) *cluster {
	if o.Resources == nil {
		o.Resources = served
	}
	return adopt(storm.NewWorld(o))
}

func adopt(w *storm.World) *cluster {
	c := still(w)
	w.Start("kubelet", world.Actor{Waker: c.Waker, Delay: time.Second, Reconcile: c.kubelet}.Run)
	return c
}

// still is a cluster in which no pods are created.
func still(w *storm.World) *cluster {
	core, ours := clients(w.ConfigFor("user"))
	return &cluster{World: w, Waker: world.NewWaker(w), user: core, ours: ours, out: map[string]bool{}, quota: map[string]int{}, boot: 5 * time.Second}
}

func (c *cluster) set(change func()) { c.Set(change) }

// deploy makes a Deployment with pods labelled app=shop and run=<name>.
func (c *cluster) deploy(name string, replicas int32, change ...func(*appsv1.Deployment)) {
	GinkgoHelper()
	labels := map[string]string{"app": "shop", "run": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}}
	d.Spec.Replicas, d.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: map[string]string{"run": name}}
	d.Spec.Template.Labels = labels
	for _, f := range change {
		f(d)
	}
	world.Create(c.user.AppsV1().Deployments(d.Namespace), d)
}

// balance makes a Balancer over Deployments named by targets.
func (c *cluster) balance(name string, replicas int32, policy v1alpha1.BalancerPolicy, targets ...string) {
	GinkgoHelper()
	c.create(object(name, replicas, policy, targets...))
}

func object(name string, replicas int32, policy v1alpha1.BalancerPolicy, targets ...string) *v1alpha1.Balancer {
	b := &v1alpha1.Balancer{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}}
	b.Spec = v1alpha1.BalancerSpec{Replicas: &replicas, Policy: policy, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}}
	for _, t := range targets {
		b.Spec.Targets = append(b.Spec.Targets, builders.Target(t))
	}
	return b
}

func (c *cluster) create(b *v1alpha1.Balancer) {
	GinkgoHelper()
	world.Create(c.ours.BalancerV1alpha1().Balancers(b.Namespace), b)
}

func (c *cluster) change(name string, change func(*v1alpha1.Balancer)) {
	GinkgoHelper()
	world.Change(c.ours.BalancerV1alpha1().Balancers(ns), name, change)
}

func (c *cluster) scale(name string, replicas int32) {
	GinkgoHelper()
	c.change(name, func(b *v1alpha1.Balancer) { b.Spec.Replicas = &replicas })
}

func (c *cluster) balancer(name string) *v1alpha1.Balancer {
	GinkgoHelper()
	return world.Stored[v1alpha1.Balancer](c, balancerGVR, ns, name)
}

// sizes are the replicas asked of Deployments, as in 3/7.
func (c *cluster) sizes(names ...string) string {
	var words []string
	for _, name := range names {
		words = append(words, fmt.Sprint(*world.Stored[appsv1.Deployment](c, deploymentGVR, ns, name).Spec.Replicas))
	}
	return strings.Join(words, "/")
}

func (c *cluster) settle() {
	ExpectWithOffset(1, c.Settle(5*time.Minute, 12*time.Hour)).To(Succeed())
}

// writes are what the controller has written since a number of writes but for events and Leases, as "scale a" or "status shop".
func (c *cluster) writes(since int) []string {
	var all []string
	for _, w := range world.WritesOf(c.World, "balancer", since) {
		all = append(all, w.Subresource+" "+w.Name)
	}
	return all
}

// events are the reasons of all events so far.
func (c *cluster) events() []string {
	var all []string
	for _, e := range world.List[corev1.Event](c, eventGVR) {
		all = append(all, e.Reason)
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
	for _, pod := range world.List[corev1.Pod](c, podGVR) {
		if pod.Status.Phase == corev1.PodRunning {
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

// kubelet keeps every Deployment's pods: all that a cluster does for them, once a second while there is something to do.
func (c *cluster) kubelet(ctx context.Context, client kubernetes.Interface, _ versioned.Interface) (again time.Duration, err error) {
	list, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for i := range list.Items {
		if c.tend(ctx, client, &list.Items[i]) {
			again = time.Second
		}
	}
	return again, nil
}

func (c *cluster) tend(ctx context.Context, client kubernetes.Interface, d *appsv1.Deployment) (busy bool) {
	list, err := client.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
	if err != nil {
		return true
	}
	wanted := int(ptr.Deref(d.Spec.Replicas, 1))
	out := false
	c.Do(func() {
		if q, ok := c.quota[d.Name]; ok {
			wanted = min(wanted, q)
		}
		out = c.out[d.Name]
	})
	living := list.Items
	for range wanted - len(living) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: d.Name + "-", Namespace: d.Namespace, Labels: d.Spec.Template.Labels}}
		if pod.Spec = d.Spec.Template.Spec; pod.Spec.Containers == nil {
			pod.Spec.Containers = []corev1.Container{{Name: "work", Image: "registry.example/work:1"}}
		}
		_, _ = client.CoreV1().Pods(d.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	}
	// Pods that do not run are deleted first, as a ReplicaSet does.
	slices.SortFunc(living, func(a, b corev1.Pod) int { return strings.Compare(string(a.Status.Phase), string(b.Status.Phase)) })
	for i := range max(0, len(living)-wanted) {
		_ = client.CoreV1().Pods(d.Namespace).Delete(ctx, living[i].Name, metav1.DeleteOptions{})
	}
	ready := 0
	for i := range living {
		pod := &living[i]
		busy = busy || pod.Status.Phase != corev1.PodRunning && !out
		if pod.Status.Phase == corev1.PodRunning {
			ready++
		} else if !out && time.Since(pod.CreationTimestamp.Time) >= c.boot {
			now := metav1.Now()
			pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}}}
			_, _ = client.CoreV1().Pods(d.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		}
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: int32(len(living)), ReadyReplicas: int32(ready)}
	_, err = client.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	return busy || err != nil || len(living) != wanted
}
