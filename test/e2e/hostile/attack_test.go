// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	balancers "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

// text is as much as the annotations of an object may be.
var text = strings.Repeat("x", 256<<10-1)

// huge is what no machine holds.
func huge(i int) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(1_000_000+int64(i), resource.DecimalSI)}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func annotated(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: map[string]string{"a": text}}
}

func template(name string, i int) corev1.PodTemplateSpec {
	p := workload(name, huge(i))
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec}
}

func selecting(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

// deploy wants so many pods that no machine holds.
func deploy(ctx context.Context, name string, replicas int32) error {
	d := &appsv1.Deployment{ObjectMeta: named(name), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selecting(name), Template: template(name, 0)}}
	_, err := user.AppsV1().Deployments(hostile).Create(ctx, d, metav1.CreateOptions{})
	return err
}

// endWith ends deployments of more pods than there can be with those that there are. Otherwise, what the next specs meet would depend
// on how long these take.
func endWith(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			d, err := kube.AppsV1().Deployments(hostile).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			d.Spec.Replicas = &d.Status.Replicas
			_, err = kube.AppsV1().Deployments(hostile).Update(ctx, d, metav1.UpdateOptions{})
			return err
		})).To(Succeed())
	}
}

// endless are workloads that want more pods than there can be. Two are smaller than they could be, because kube-controller-manager
// itself does not survive them: it builds every pod of a StatefulSet in memory before it creates the first (20 GB for 2^31-1
// replicas), and takes gigabytes for a Job with 100,000 pods side by side.
func endless(ctx context.Context) error {
	if err := deploy(ctx, "endless", math.MaxInt32); err != nil {
		return err
	}
	_, err := user.AppsV1().StatefulSets(hostile).Create(ctx, &appsv1.StatefulSet{ObjectMeta: named("stateful"), Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To[int32](10_000), PodManagementPolicy: appsv1.ParallelPodManagement, Selector: selecting("stateful"), Template: template("stateful", 1),
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim("data")},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for name, spec := range map[string]batchv1.JobSpec{
		"billion": {Completions: ptr.To[int32](1_000_000_000), Parallelism: ptr.To[int32](500)},
		"indexed": {Completions: ptr.To[int32](100_000), Parallelism: ptr.To[int32](500), CompletionMode: ptr.To(batchv1.IndexedCompletion)},
	} {
		spec.Template = template(name, 2)
		spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		if _, err := user.BatchV1().Jobs(hostile).Create(ctx, &batchv1.Job{ObjectMeta: named(name), Spec: spec}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func claim(name string) corev1.PersistentVolumeClaim {
	c := corev1.PersistentVolumeClaim{ObjectMeta: named(name)}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return c
}

// many are texts that differ.
func many(text string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(text, i)
	}
	return all
}

// balancing returns a Balancer with the largest allowed number of targets. Some of them exist.
func balancing(name string, i int) *balancers.Balancer {
	b := &balancers.Balancer{ObjectMeta: annotated(name)}
	b.Spec.Replicas, b.Spec.Selector = ptr.To[int32](math.MaxInt32), *selecting(name)
	b.Spec.Policy.PolicyName = balancers.Even
	for t := range 64 {
		b.Spec.Targets = append(b.Spec.Targets, balancers.BalancerTarget{Name: fmt.Sprint("t", t),
			ScaleTargetRef: balancers.ScaleTargetReference{APIVersion: "apps/v1", Kind: []string{"Deployment", "StatefulSet"}[t%2], Name: fmt.Sprint("x", max(0, i-t))}})
	}
	return b
}

// waiting are pods that say as much as a pod may, each in another way.
var waiting = []func(p *corev1.Pod){
	func(p *corev1.Pod) {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(recent(p.Name, groups))}
	},
	func(p *corev1.Pod) {
		for i := range 32 {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprint("claim", i), ResourceClaimTemplateName: ptr.To(recent(p.Name, templates))})
		}
	},
	func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "claim", ResourceClaimTemplateName: ptr.To(recent(p.Name, templates))}}
	},
	func(p *corev1.Pod) { p.Annotations = map[string]string{"a": text} },
	func(*corev1.Pod) {},
	func(p *corev1.Pod) {
		for i := range 100 {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: fmt.Sprint("key", i), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selecting(p.Name)})
		}
	},
	func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: apart(1500)} },
	func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: apart(20)} },
	func(p *corev1.Pod) {
		for i := range 3000 {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprint("key", i), Operator: corev1.TolerationOpExists})
		}
	},
	func(p *corev1.Pod) {
		for i := range 2000 {
			p.Labels[fmt.Sprint("key", i)] = "value"
		}
	},
	func(p *corev1.Pod) {
		for i := range 20 {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: fmt.Sprint("key", i), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{}})
		}
	},
	func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: text}}
	},
}

func apart(terms int) *corev1.PodAntiAffinity {
	a := &corev1.PodAntiAffinity{}
	for i := range terms {
		a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{
			TopologyKey: fmt.Sprint("key", i), LabelSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{}})
	}
	return a
}

// Places of kinds in others that pods name.
const groups, templates = 0, 1

// recent returns the name of the last object of a kind that was created before a pod.
func recent(pod string, kind int) string {
	i, _ := strconv.Atoi(strings.TrimPrefix(pod, "x"))
	round := 8 * len(others)
	return fmt.Sprint("x", max(0, i-8*kind)/round*round+8*kind)
}

// others are objects of the other kinds that are watched.
var others = []func(ctx context.Context, name string, i int) error{
	func(ctx context.Context, name string, _ int) error {
		g := &schedulingv1alpha2.PodGroup{ObjectMeta: annotated(name)}
		g.Spec.SchedulingPolicy.Gang = &schedulingv1alpha2.GangSchedulingPolicy{MinCount: 2}
		_, err := user.SchedulingV1alpha2().PodGroups(hostile).Create(ctx, g, metav1.CreateOptions{})
		return err
	},
	func(ctx context.Context, name string, _ int) error {
		t := &resourceapi.ResourceClaimTemplate{ObjectMeta: annotated(name)}
		for i := range 32 {
			request := &resourceapi.ExactDeviceRequest{DeviceClassName: "any", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}
			for n := range 32 {
				request.Selectors = append(request.Selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver.matches('(a+)+%s%d-%d')", name, i, n)}})
			}
			t.Spec.Spec.Devices.Requests = append(t.Spec.Spec.Devices.Requests, resourceapi.DeviceRequest{Name: fmt.Sprint("r", i), Exactly: request})
		}
		_, err := user.ResourceV1().ResourceClaimTemplates(hostile).Create(ctx, t, metav1.CreateOptions{})
		return err
	},
	func(ctx context.Context, name string, _ int) error {
		c := claim(name)
		c.ObjectMeta = annotated(name)
		_, err := user.CoreV1().PersistentVolumeClaims(hostile).Create(ctx, &c, metav1.CreateOptions{})
		return err
	},
	func(ctx context.Context, name string, i int) error {
		_, err := user.AppsV1().ReplicaSets(hostile).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: annotated(name),
			Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](math.MaxInt32), Selector: selecting(name), Template: template(name, i)}}, metav1.CreateOptions{})
		return err
	},
	func(ctx context.Context, name string, i int) error {
		_, err := user.AppsV1().DaemonSets(hostile).Create(ctx, &appsv1.DaemonSet{ObjectMeta: annotated(name),
			Spec: appsv1.DaemonSetSpec{Selector: selecting(name), Template: template(name, i)}}, metav1.CreateOptions{})
		return err
	},
	func(ctx context.Context, name string, _ int) error {
		_, err := user.PolicyV1().PodDisruptionBudgets(hostile).Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: annotated(name),
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: selecting(name)}}, metav1.CreateOptions{})
		return err
	},
	func(ctx context.Context, name string, i int) error {
		o := federatedOf(name)
		stuffings[i%len(stuffings)](o)
		_, err := federating.AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(hostile).Create(ctx, o, metav1.CreateOptions{})
		return err
	},
	func(ctx context.Context, name string, i int) error {
		d := &appsv1.Deployment{ObjectMeta: annotated(name), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0), Selector: selecting(name), Template: template(name, i)}}
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "other", Operator: metav1.LabelSelectorOpNotIn, Values: many("value", 10_000)}}
		_, err := user.AppsV1().Deployments(hostile).Create(ctx, d, metav1.CreateOptions{})
		return err
	},
	func(ctx context.Context, name string, i int) error {
		d := &appsv1.StatefulSet{ObjectMeta: annotated(name), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0), Selector: selecting(name), Template: template(name, i)}}
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "other", Operator: metav1.LabelSelectorOpNotIn, Values: many("value", 10_000)}}
		_, err := user.AppsV1().StatefulSets(hostile).Create(ctx, d, metav1.CreateOptions{})
		return err
	},
	func(ctx context.Context, name string, i int) error {
		_, err := federating.BalancerV1alpha1().Balancers(hostile).Create(ctx, balancing(name, i), metav1.CreateOptions{})
		return err
	},
	func(ctx context.Context, name string, _ int) error {
		_, err := user.AutoscalingV2().HorizontalPodAutoscalers(hostile).Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: annotated(name),
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: math.MaxInt32, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: name, APIVersion: "apps/v1"}}}, metav1.CreateOptions{})
		return err
	},
}

// attacker creates objects until it is stopped.
type attacker struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	number  atomic.Int64

	mu sync.Mutex
	// created counts objects by kind, and refused holds the last refusal of each.
	created map[int]int
	refused map[int]error
}

// attack begins to create objects: mostly pods, each of another shape. What the API server refuses is not tried again. It ends
// after 3,000 objects: without an end, a faster machine would face a larger attack.
func attack(ctx context.Context) *attacker {
	const writers, most = 6, 3000
	ctx, cancel := context.WithCancel(ctx)
	a := &attacker{cancel: cancel, created: map[int]int{}, refused: map[int]error{}}
	for range writers {
		a.running.Go(func() {
			for ctx.Err() == nil && a.number.Load() < most {
				a.create(ctx, int(a.number.Add(1)))
			}
		})
	}
	return a
}

// pods is the kind of objects that are pods; other kinds are places in others.
const pods = -1

func (a *attacker) create(ctx context.Context, i int) {
	name, kind := fmt.Sprintf("x%d", i), pods
	var err error
	if i%8 == 0 {
		kind = i / 8 % len(others)
		err = others[kind](ctx, name, i)
	} else {
		_, err = user.CoreV1().Pods(hostile).Create(ctx, workload(name, huge(i), waiting[i%len(waiting)]), metav1.CreateOptions{})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.refused[kind] = err
		return
	}
	a.created[kind]++
}

// stop ends the attack, and returns how many objects were created. An attack that created none of some kind is none.
func (a *attacker) stop() int {
	GinkgoHelper()
	a.cancel()
	a.running.Wait()
	sum := 0
	for kind := pods; kind < len(others); kind++ {
		Expect(a.created[kind]).To(BeNumerically(">", 0), "kind %d: %v", kind, a.refused[kind])
		sum += a.created[kind]
	}
	return sum
}
