// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	balancerclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/balancer/v1alpha1"
)

// shop is one Deployment per zone under a Balancer, in a namespace of its own. Zones are named a, b and so on; each has
// one node, which takes no other pods.
type shop struct {
	name  string
	zones []string
}

// shopKey is the label and the taint of a shop's nodes.
const shopKey = "evenkeel.test/zone"

// newShop makes the zones, and a Deployment without replicas in each.
func newShop(ctx context.Context, name string, zones int, changes ...func(*appsv1.Deployment)) shop {
	GinkgoHelper()
	s := shop{name: name}
	_, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
	for i := range zones {
		zone := string(rune('a' + i))
		s.zones = append(s.zones, zone)
		s.newNode(ctx, zone)
		s.deploy(ctx, zone, changes...)
	}
	return s
}

func (s shop) node(zone string) string { return s.name + "-" + zone }

func (s shop) newNode(ctx context.Context, zone string) {
	GinkgoHelper()
	name, size := s.node(zone), corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("100")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{shopKey: name}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: shopKey, Value: name, Effect: corev1.TaintEffectNoSchedule}}},
		Status:     corev1.NodeStatus{Capacity: size, Allocatable: size},
	}
	_, err := kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
}

func (s shop) deploy(ctx context.Context, zone string, changes ...func(*appsv1.Deployment)) {
	GinkgoHelper()
	labels := map[string]string{"app": s.name, "zone": zone}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: zone}}
	d.Spec.Replicas, d.Spec.Selector = ptr.To[int32](0), &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec = corev1.PodSpec{
		NodeSelector:                  map[string]string{shopKey: s.node(zone)},
		Tolerations:                   []corev1.Toleration{{Key: shopKey, Operator: corev1.TolerationOpExists}},
		TerminationGracePeriodSeconds: new(int64),
		Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}}},
	}
	for _, change := range changes {
		change(d)
	}
	_, err := kube.AppsV1().Deployments(s.name).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// replicate makes a ReplicationController without replicas, with pods as those of the Deployment of zone a.
func (s shop) replicate(ctx context.Context, zone string) {
	GinkgoHelper()
	d, err := kube.AppsV1().Deployments(s.name).Get(ctx, "a", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	template := d.Spec.Template.DeepCopy()
	template.Labels["zone"], template.Spec.NodeSelector[shopKey] = zone, s.node(zone)
	c := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: zone}}
	c.Spec = corev1.ReplicationControllerSpec{Replicas: new(int32), Selector: template.Labels, Template: template}
	_, err = kube.CoreV1().ReplicationControllers(s.name).Create(ctx, c, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (s shop) balancers() balancerclient.BalancerInterface {
	return machines.BalancerV1alpha1().Balancers(s.name)
}

// quick is a fallback after some seconds. Specs that do not need it do without: on a slow machine pods take that long.
func quick(b *balancer.Balancer) {
	b.Spec.Policy.Fallback = &balancer.Fallback{StartupTimeoutSeconds: ptr.To[int32](5), RecoveryDelaySeconds: ptr.To[int32](2)}
}

// balance makes the Balancer.
func (s shop) balance(ctx context.Context, replicas int32, policy balancer.BalancerPolicy, changes ...func(*balancer.Balancer)) {
	GinkgoHelper()
	b := &balancer.Balancer{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	b.Spec = balancer.BalancerSpec{Replicas: &replicas, Policy: policy, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": s.name}}}
	for _, zone := range s.zones {
		b.Spec.Targets = append(b.Spec.Targets, balancer.BalancerTarget{
			Name: zone, ScaleTargetRef: balancer.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: zone}})
	}
	for _, change := range changes {
		change(b)
	}
	_, err := s.balancers().Create(ctx, b, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// bounded sets what a target has at least and at most; a maximum below 0 is none.
func bounded(target int, lo, hi int32) func(*balancer.Balancer) {
	return func(b *balancer.Balancer) {
		b.Spec.Targets[target].MinReplicas = ptr.To(intstr.FromInt32(lo))
		if hi >= 0 {
			b.Spec.Targets[target].MaxReplicas = ptr.To(intstr.FromInt32(hi))
		}
	}
}

func byShare(shares ...int32) balancer.BalancerPolicy {
	proportions := map[string]int32{}
	for i, share := range shares {
		proportions[string(rune('a'+i))] = share
	}
	return balancer.BalancerPolicy{PolicyName: balancer.Proportional, Proportions: &balancer.ProportionalPolicy{TargetProportions: proportions}}
}

func inOrder(targets ...string) balancer.BalancerPolicy {
	return balancer.BalancerPolicy{PolicyName: balancer.Priority, Priorities: &balancer.PriorityPolicy{TargetOrder: targets}}
}

func (s shop) patch(ctx context.Context, merge string) {
	GinkgoHelper()
	_, err := s.balancers().Patch(ctx, s.name, types.MergePatchType, []byte(merge), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// scale uses the subresource, as kubectl and autoscalers do.
func (s shop) scale(ctx context.Context, replicas int32) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale, err := s.balancers().GetScale(ctx, s.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		scale.Spec.Replicas = replicas
		_, err = s.balancers().UpdateScale(ctx, s.name, scale, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
}

// sizes are what the Deployments are asked for and how many of that are ready, as in "3/7 of 3/7".
func (s shop) sizes(ctx context.Context) (string, error) {
	var ready, asked []string
	for _, zone := range s.zones {
		d, err := kube.AppsV1().Deployments(s.name).Get(ctx, zone, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		ready, asked = append(ready, fmt.Sprint(d.Status.ReadyReplicas)), append(asked, fmt.Sprint(*d.Spec.Replicas))
	}
	return strings.Join(ready, "/") + " of " + strings.Join(asked, "/"), nil
}

// comesTo waits until so many are ready of so many asked for.
func (s shop) comesTo(ctx context.Context, ready, asked string) {
	GinkgoHelper()
	Eventually(s.sizes).WithContext(ctx).Should(Equal(ready + " of " + asked))
}

// says waits until the Balancer has this condition, as in "False NoRoom".
func (s shop) says(ctx context.Context, condition, want string) {
	GinkgoHelper()
	Eventually(func() (string, error) {
		b, err := s.balancers().Get(ctx, s.name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		for _, c := range b.Status.Conditions {
			if c.Type == condition && c.ObservedGeneration == b.Generation {
				return string(c.Status) + " " + c.Reason, nil
			}
		}
		return "absent", nil
	}).WithContext(ctx).Should(Equal(want))
}

// outage ends a zone's pods and lets no others start there, until it is over.
func (s shop) outage(ctx context.Context, zone string) (over func()) {
	GinkgoHelper()
	cordon := func(is bool) {
		GinkgoHelper()
		_, err := kube.CoreV1().Nodes().Patch(ctx, s.node(zone), types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, is), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	cordon(true)
	Expect(kube.CoreV1().Pods(s.name).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "zone=" + zone})).To(Succeed())
	return func() { cordon(false) }
}

// cutOff ends the heartbeats of a zone's node, as if its kubelet could not reach the API server, until it is over. Then
// it restores the pods' readiness as a kubelet does, which kwok does not.
func (s shop) cutOff(ctx context.Context, zone string) (over func()) {
	GinkgoHelper()
	manage := func(fake string) {
		GinkgoHelper()
		_, err := kube.CoreV1().Nodes().Patch(ctx, s.node(zone), types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"kwok.x-k8s.io/node":%s}}}`, fake), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	manage("null")
	return func() {
		GinkgoHelper()
		manage(`"fake"`)
		Eventually(func() (corev1.ConditionStatus, error) {
			c, err := s.readiness(ctx, zone)
			return c.Status, err
		}).WithContext(ctx).Should(Equal(corev1.ConditionTrue))
		list, err := kube.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{LabelSelector: "zone=" + zone})
		Expect(err).NotTo(HaveOccurred())
		for i := range list.Items {
			for j := range list.Items[i].Status.Conditions {
				list.Items[i].Status.Conditions[j].Status = corev1.ConditionTrue
			}
			_, err := kube.CoreV1().Pods(s.name).UpdateStatus(ctx, &list.Items[i], metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
	}
}

// readiness is the condition Ready of a zone's node.
func (s shop) readiness(ctx context.Context, zone string) (corev1.NodeCondition, error) {
	node, err := kube.CoreV1().Nodes().Get(ctx, s.node(zone), metav1.GetOptions{})
	if err != nil {
		return corev1.NodeCondition{}, err
	}
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if at < 0 {
		return corev1.NodeCondition{}, nil
	}
	return node.Status.Conditions[at], nil
}

// turned is since when a zone's node has been ready, or not ready.
func (s shop) turned(ctx context.Context, zone string, to corev1.ConditionStatus) time.Time {
	GinkgoHelper()
	c, err := s.readiness(ctx, zone)
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Status).To(Equal(to))
	return c.LastTransitionTime.Time
}
