// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	ourfake "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/fake"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	. "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// rich is a template with many fields that matter.
var rich = corev1.PodTemplateSpec{
	ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "none"}},
	Spec: PodSpec("cpu=1", func(s *corev1.PodSpec) {
		s.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: Amounts("cpu=3")}}}
		s.PriorityClassName = "important"
		s.Containers = append(s.Containers, corev1.Container{Name: "side", Resources: corev1.ResourceRequirements{Limits: Amounts("memory=1Gi")}})
		s.Overhead, s.ActiveDeadlineSeconds, s.NodeSelector = Amounts("cpu=100m"), ptr.To[int64](60), map[string]string{"pool": "b"}
		s.Tolerations = []corev1.Toleration{{Key: "own", Operator: corev1.TolerationOpExists}}
	}),
}

func owned(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: Shop, Name: name, OwnerReferences: []metav1.OwnerReference{{Controller: ptr.To(true), Kind: "X", Name: "x"}}}
}

var _ = Describe("What the cache keeps", func() {
	of := func(w *plan.Workload) plan.View {
		b := NewBuffer("b", "{"+ByWorkload+", percentage: 50, limits: {cpu: 10}}")
		b.Workload = w
		terminating := Quota("q", "requests.cpu=7", "", WithScopes(corev1.ResourceQuotaScopeTerminating), WithClasses(corev1.ScopeSelectorOpIn, "important"))
		return plan.View{Buffers: []plan.Buffer{b}, Quotas: []*corev1.ResourceQuota{terminating}, Pools: []plan.Pool{Site("a", "cpu=8,memory=8Gi", 9), Site("b", "cpu=8,memory=8Gi", 9)}}
	}

	DescribeTable("of a workload is all that matters",
		func(object any) {
			kept := WorkloadOf(object)
			whole, slim := plan.New(of(&plan.Workload{Replicas: 7, Template: &rich})), plan.New(of(&kept))
			Expect(Outcome(slim.Decisions[0])).To(Equal("2 of 3 by q"))
			Expect(Outcome(slim.Decisions[0])).To(Equal(Outcome(whole.Decisions[0])))
			Expect(Requests(slim)).To(And(Equal(Requests(whole)), Equal("b=1")))
		},
		Entry("Deployment", &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](7), Template: rich}}),
		Entry("StatefulSet", &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](7), Template: rich}}),
		Entry("ReplicaSet", &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](7), Template: rich}}),
		Entry("ReplicationController", &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Replicas: ptr.To[int32](7), Template: &rich}}),
		Entry("Job", &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](7), Template: rich}}),
	)

	DescribeTable("has no template of what has ended",
		func(object any) { Expect(WorkloadOf(object).Template).To(BeNil()) },
		Entry("a Job that is complete", &batchv1.Job{Spec: batchv1.JobSpec{Template: rich}, Status: batchv1.JobStatus{CompletionTime: &metav1.Time{Time: Now}}}),
		Entry("a Job that has failed", &batchv1.Job{Spec: batchv1.JobSpec{Template: rich}, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}}),
		Entry("an old ReplicaSet of a Deployment", &appsv1.ReplicaSet{ObjectMeta: owned("old"), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), Template: rich}}),
	)

	DescribeTable("has the template of what goes on",
		func(object any) { Expect(WorkloadOf(object).Template).NotTo(BeNil()) },
		Entry("a Job that has not failed", &batchv1.Job{Spec: batchv1.JobSpec{Template: rich}, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionFalse}}}}),
		Entry("a Job that is suspended", &batchv1.Job{Spec: batchv1.JobSpec{Template: rich}, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}}}),
		Entry("the present ReplicaSet of a Deployment", &appsv1.ReplicaSet{ObjectMeta: owned("new"), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](2), Template: rich}}),
		Entry("a ReplicaSet of a Deployment without replicas", &appsv1.ReplicaSet{ObjectMeta: owned("new"), Spec: appsv1.ReplicaSetSpec{Template: rich}}),
		Entry("a ReplicaSet of its own, without pods", &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), Template: rich}}),
	)

	It("of anything else is the thing itself", func() {
		Expect(StripBuffer("else")).To(Equal("else"))
	})

	DescribeTable("of limits is all, up to 64 resources",
		func(more, want int) {
			full := NewBuffer("b", "{"+ByTemplate+", limits: {cpu: 1}}").Object
			for i := range more {
				full.Spec.Limits[v1beta1.ResourceName(fmt.Sprint("example.com/r", i))] = resource.MustParse("1")
			}
			kept, err := StripBuffer(full)
			Expect(err).NotTo(HaveOccurred())
			Expect(kept.(*v1beta1.CapacityBuffer).Spec.Limits).To(HaveLen(want))
		},
		Entry("64", 63, 64),
		Entry("65", 64, 0),
	)

	It("counts a workload without replicas as one", func() {
		Expect(WorkloadOf(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: rich}}).Replicas).To(BeEquivalentTo(1))
	})

	It("is bounded, and a chunk that is too large is said to be unclear", func() {
		large := *rich.DeepCopy()
		for i := range 2000 {
			large.Annotations[fmt.Sprint("a", i)] = strings.Repeat("x", 100)
			large.Spec.NodeSelector[fmt.Sprint("a", i)] = "x"
		}
		kept := WorkloadOf(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: large}})
		Expect(kept.Template.Size()).To(BeNumerically("<", 2*fit.MaxBytes))
		Expect(Outcome(plan.New(of(&kept)).Decisions[0])).To(Equal(reason.ShapeUnclear))
	})

	It("of a buffer of others is only its name, and of one of ours what is read", func() {
		full := percent("b", "web", 20)
		full.Generation, full.CreationTimestamp = 3, metav1.NewTime(Now)
		full.UID, full.ResourceVersion, full.Annotations = "u", "7", map[string]string{"note": "x", v1beta1.PoolAnnotation: "a", v1beta1.PrepareAnnotation: "true"}
		ours, err := StripBuffer(full)
		Expect(err).NotTo(HaveOccurred())
		Expect(ours.(*v1beta1.CapacityBuffer).Spec).To(Equal(full.Spec))
		Expect(ours).To(And(HaveField("Generation", full.Generation), HaveField("CreationTimestamp", full.CreationTimestamp)))
		Expect(ours.(*v1beta1.CapacityBuffer).Annotations).To(Equal(map[string]string{v1beta1.PoolAnnotation: "a", v1beta1.PrepareAnnotation: "true"}))
		full.Spec.ProvisioningStrategy = ptr.To(v1beta1.StrategyActive)
		theirs, err := StripBuffer(full)
		Expect(err).NotTo(HaveOccurred())
		Expect(theirs).To(Equal(&v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: "b", UID: "u", ResourceVersion: "7"}}))
	})

	It("of an annotation is no more than its first kilobyte", func() {
		long := percent("b", "web", 20)
		long.Annotations = map[string]string{v1beta1.DedicatedAnnotation: strings.Repeat("x", 1024) + "y"}
		kept, err := StripBuffer(long)
		Expect(err).NotTo(HaveOccurred())
		Expect(kept.(*v1beta1.CapacityBuffer).Annotations).To(HaveKeyWithValue(v1beta1.DedicatedAnnotation, strings.Repeat("x", 1024)))
	})

	It("of limits that name too many resources is none, which matches no chunk", func() {
		full := NewBuffer("b", "{"+ByTemplate+", replicas: 1, limits: {cpu: 1}}").Object
		for i := range 100 {
			full.Spec.Limits[v1beta1.ResourceName(fmt.Sprint("example.com/r", i))] = resource.MustParse("1")
		}
		kept, err := StripBuffer(full)
		Expect(err).NotTo(HaveOccurred())
		b := NewBuffer("b", "{}", WithTemplate(PodSpec("cpu=1,memory=1Gi")))
		b.Object = kept.(*v1beta1.CapacityBuffer)
		Expect(Outcome(plan.New(plan.View{Buffers: []plan.Buffer{b}}).Decisions[0])).To(Equal(reason.LimitsDoNotMatch))
	})
})

var _ = Describe("The role of the controller in the target cluster", func() {
	It("covers all that the controller waits for, also where no other controller runs", func(ctx SpecContext) {
		core := fake.NewClientset()
		var mu sync.Mutex
		listed := map[string]bool{}
		core.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			listed[a.GetResource().Resource] = true
			return false, nil, nil
		})
		readTarget(ctx, core)
		granted := grants("evenkeel-capacitybuffer-target")
		mu.Lock()
		defer mu.Unlock()
		Expect(listed).NotTo(BeEmpty())
		for resource := range listed {
			Expect(granted).To(HaveKeyWithValue(resource, ContainElements("list", "watch")))
		}
	})
})

// readTarget reads what the controller asks for of the target cluster.
func readTarget(ctx context.Context, core kubernetes.Interface) {
	GinkgoHelper()
	ours := ourfake.NewSimpleClientset()
	objects, machines, nodes, shapes := externalversions.NewSharedInformerFactory(ours, 0), stores.New(ours, Namespace), target.New(core, nil), NewShapes(core, nil)
	it, err := New(Clients{}, Informers{
		Buffers: objects.CapacityBuffer().V1beta1().CapacityBuffers().Informer(), Reserves: objects.Autoscaling().V1alpha1().Reserves().Informer(),
		Machines: machines, Target: nodes, Shapes: shapes,
	}, Options{Namespace: Namespace, Scales: new(ScaleReader)})
	Expect(err).NotTo(HaveOccurred())
	reading, end := context.WithCancel(ctx)
	for _, informers := range []world.Informers{world.InformersOf(objects), machines, nodes, world.InformersOf(shapes)} {
		informers.Start(reading)
		DeferCleanup(informers.Shutdown)
	}
	Expect(cache.WaitFor(ctx, "", it.Filled()...)).To(BeTrue())
	Expect(shapes.WaitForCacheSyncWithContext(ctx).Err).NotTo(HaveOccurred())
	end()
	it.Run(reading)
}

// grants returns the verbs that a rendered ClusterRole grants, by resource.
func grants(name string) map[string][]string {
	GinkgoHelper()
	file, err := os.Open("../../../kubernetes/deploy/target/access.yaml")
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	verbs := map[string][]string{}
	for documents := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var role rbacv1.ClusterRole
		if err := documents.Decode(&role); err == io.EOF {
			return verbs
		}
		if !strings.HasSuffix(role.Kind, "Role") || role.Name != name {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				verbs[resource] = slices.Concat(verbs[resource], rule.Verbs)
			}
		}
	}
}
