// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
)

// rule is a spec of a buffer, and how many chunks it has with us. Theirs is what cluster-autoscaler computes, empty for the same.
type rule struct {
	what, spec, ours, theirs string
	// quota is the ResourceQuota of its namespace.
	quota string
}

const (
	// invalid is a buffer that is not ready for provisioning, and ignored is one that nothing is said about.
	invalid, ignored = "invalid", "ignored"

	largest = "2147483647"
)

// of is a buffer of a PodTemplate, and like one of a Deployment with so many replicas.
func of(template, number string) string {
	return fmt.Sprintf("podTemplateRef: {name: %s}, %s", template, number)
}

func like(replicas int, number string) string {
	return scaling("apps", "Deployment", fmt.Sprintf("web-%d", replicas), number)
}

func scaling(group, kind, name, number string) string {
	return strings.TrimSuffix(fmt.Sprintf("scalableRef: {apiGroup: %q, kind: %s, name: %s}, %s", group, kind, name, number), ", ")
}

var rules = []rule{
	{what: "replicas", spec: of("one", "replicas: 3"), ours: "3"},
	{what: "replicas of 0", spec: of("one", "replicas: 0"), ours: "0"},
	{what: "the largest number of replicas", spec: of("one", "replicas: "+largest), ours: largest},
	{what: "limits alone", spec: of("one", "limits: {cpu: 4}"), ours: "4"},
	{what: "limits, rounded down", spec: of("one", "limits: {cpu: 4900m}"), ours: "4"},
	{what: "limits below replicas", spec: of("one", "replicas: 3, limits: {cpu: 2}"), ours: "2"},
	{what: "limits above replicas", spec: of("one", "replicas: 2, limits: {cpu: 9}"), ours: "2"},
	{what: "the smaller of two limits", spec: of("one", "limits: {cpu: 8, memory: 3Gi}"), ours: "3"},
	{what: "limits, one of them irrelevant", spec: of("one", "limits: {cpu: 8, nvidia.com/gpu: 1}"), ours: "8"},
	{what: "limits that do not match", spec: of("one", "limits: {nvidia.com/gpu: 1}"), ours: invalid},
	{what: "limits that do not match beside replicas", spec: of("one", "replicas: 1, limits: {nvidia.com/gpu: 1}"), ours: invalid},
	{what: "limits without a resource", spec: of("one", "limits: {}"), ours: invalid},
	{what: "limits below one chunk", spec: of("one", "limits: {cpu: 900m}"), ours: "0"},
	{what: "limits of 0", spec: of("one", "limits: {cpu: 0}"), ours: "0"},
	{what: "limits below 0", spec: of("one", "limits: {cpu: -3}"), ours: "0", theirs: invalid},
	{what: "limits of another resource", spec: of("gpu", "limits: {nvidia.com/gpu: 5}"), ours: "2"},
	{what: "a request that is huge", spec: of("huge", "limits: {memory: 1Ti}"), ours: "0", theirs: invalid},
	{what: "a request of thousandths", spec: of("tiny", "limits: {cpu: 1}"), ours: "1000"},
	{what: "a request of 0", spec: of("zero", "limits: {cpu: 1}"), ours: invalid},
	{what: "a chunk without requests", spec: of("none", "replicas: 3"), ours: "3"},
	{what: "a chunk without requests beside limits", spec: of("none", "limits: {cpu: 1}"), ours: invalid},
	{what: "a limit of a container that requests nothing", spec: of("limited", "limits: {cpu: 4}"), ours: "2"},
	{what: "a limit of a container that requests less", spec: of("bursting", "limits: {cpu: 4}"), ours: "4"},
	{what: "an init container that requests more", spec: of("init-more", "limits: {cpu: 4}"), ours: "2"},
	{what: "an init container that requests less", spec: of("init-less", "limits: {cpu: 4}"), ours: "4"},
	{what: "a sidecar", spec: of("sidecar", "limits: {cpu: 4}"), ours: "2"},
	{what: "two containers", spec: of("two", "limits: {cpu: 4}"), ours: "2"},
	{what: "a percentage of a PodTemplate", spec: of("one", "replicas: 3, percentage: 500"), ours: "3"},
	{what: "a PodTemplate that is gone", spec: of("gone", "replicas: 3"), ours: invalid},
	{what: "no reference", spec: "replicas: 3", ours: invalid, theirs: ignored},
	{what: "a workload and replicas alone", spec: like(10, "replicas: 3"), ours: "3"},
	{what: "a percentage", spec: like(10, "percentage: 20"), ours: "2"},
	{what: "a percentage, rounded", spec: like(11, "percentage: 20"), ours: "3", theirs: "2"},
	{what: "a percentage of one", spec: like(1, "percentage: 1"), ours: "1", theirs: "0"},
	{what: "a percentage of 0", spec: like(10, "percentage: 0"), ours: "0"},
	{what: "a percentage of no replicas", spec: like(0, "percentage: 20"), ours: "0"},
	{what: "all of the replicas", spec: like(3, "percentage: 100"), ours: "3"},
	{what: "a percentage above 100", spec: like(3, "percentage: 250"), ours: "8", theirs: "7"},
	{what: "a percentage below replicas", spec: like(10, "percentage: 20, replicas: 5"), ours: "5", theirs: "2"},
	{what: "a percentage above replicas", spec: like(10, "percentage: 20, replicas: 1"), ours: "2", theirs: "1"},
	{what: "a percentage of 0 beside replicas", spec: like(10, "percentage: 0, replicas: 4"), ours: "4", theirs: "0"},
	{what: "a percentage above limits", spec: like(10, "percentage: 50, limits: {cpu: 3}"), ours: "3"},
	{what: "all three", spec: like(10, "percentage: 50, replicas: 7, limits: {cpu: 6}"), ours: "6", theirs: "5"},
	{what: "a workload and limits alone", spec: like(10, "limits: {cpu: 6}"), ours: "6"},
	{what: "a workload and no number", spec: like(10, ""), ours: invalid},
	{what: "a workload that is gone", spec: like(99, "percentage: 20"), ours: invalid},
	{what: "a ReplicaSet", spec: scaling("apps", "ReplicaSet", "web", "percentage: 20"), ours: "2"},
	{what: "a StatefulSet", spec: scaling("apps", "StatefulSet", "web", "percentage: 20"), ours: "2"},
	{what: "a StatefulSet with one of ten pods", spec: scaling("apps", "StatefulSet", "growing", "percentage: 20"), ours: "2", theirs: "0"},
	{what: "a ReplicationController", spec: scaling("", "ReplicationController", "web", "percentage: 20"), ours: "2"},
	{what: "a Job", spec: scaling("batch", "Job", "web", "percentage: 20"), ours: "2"},
	{what: "a kind that is not served", spec: scaling("argoproj.io", "Rollout", "web", "percentage: 20"), ours: invalid},
	{what: "a quota of requests that leaves all", quota: "requests.cpu=7", spec: of("one", "replicas: 3"), ours: "3"},
	{what: "a quota of requests that leaves some", quota: "requests.cpu=2", spec: of("one", "replicas: 3"), ours: "2"},
	{what: "a quota by its short name, rounded down", quota: "memory=2900Mi", spec: of("one", "replicas: 3"), ours: "2"},
	{what: "a quota of another resource", quota: "requests.nvidia.com/gpu=0", spec: of("one", "replicas: 3"), ours: "3"},
	{what: "a quota of pods", quota: "pods=1", spec: of("one", "replicas: 3"), ours: "3"},
}

// shapes are the PodTemplates.
var shapes = map[string]corev1.PodSpec{
	"one": shape("cpu=1,memory=1Gi"), "gpu": limited("nvidia.com/gpu=2", "nvidia.com/gpu=2"), "huge": shape("memory=8E"), "tiny": shape("cpu=1m"), "zero": shape("cpu=0"), "none": shape(""),
	"limited": limited("", "cpu=2"), "bursting": limited("cpu=1", "cpu=2"), "two": {Containers: append(shape("cpu=1").Containers, one("second", "cpu=1"))},
	"init-more": {Containers: shape("cpu=1").Containers, InitContainers: []corev1.Container{one("first", "cpu=2")}},
	"init-less": {Containers: shape("cpu=1").Containers, InitContainers: []corev1.Container{one("first", "cpu=1")}},
	"sidecar":   {Containers: shape("cpu=1").Containers, InitContainers: []corev1.Container{always(one("first", "cpu=1"))}},
}

func one(name, requests string) corev1.Container {
	return corev1.Container{Name: name, Image: "none", Resources: corev1.ResourceRequirements{Requests: amounts(requests)}}
}

func always(c corev1.Container) corev1.Container {
	c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	return c
}

func shape(requests string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{one("main", requests)}}
}

func limited(requests, limits string) corev1.PodSpec {
	s := shape(requests)
	s.Containers[0].Resources.Limits = amounts(limits)
	return s
}

// amounts reads resources, as in "cpu=1,memory=1Gi".
func amounts(text string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, amount, _ := strings.Cut(part, "=")
		all[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return all
}

// space makes a namespace with all shapes.
func space(ctx context.Context, name, quota string) {
	GinkgoHelper()
	_, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	// The next spec's autoscaler would make a placeholder pod for each of 2^31-1 chunks of a buffer that is left.
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() error {
			_, err := kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			return err
		}).Should(MatchError(apierrors.IsNotFound, "gone"))
	})
	for template, spec := range shapes {
		_, err := kube.CoreV1().PodTemplates(name).Create(ctx, &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: template}, Template: corev1.PodTemplateSpec{Spec: spec}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	if quota != "" {
		_, err := kube.CoreV1().ResourceQuotas(name).Create(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}, Spec: corev1.ResourceQuotaSpec{Hard: amounts(quota)}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// workloads makes one of each kind with ten replicas, and Deployments of several sizes. Their pods find no Node.
func workloads(ctx context.Context, namespace string) {
	GinkgoHelper()
	labels := map[string]string{"app": "rules"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec("nowhere", "1")}
	selector, ten := &metav1.LabelSelector{MatchLabels: labels}, ptr.To[int32](10)
	for _, replicas := range []int32{0, 1, 3, 10, 11} {
		own := map[string]string{"app": fmt.Sprintf("web-%d", replicas)}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: own["app"]}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: own}, Template: template}}
		d.Spec.Template.Labels = own
		_, err := kube.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	web := metav1.ObjectMeta{Name: "web"}
	_, err := kube.AppsV1().ReplicaSets(namespace).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: web, Spec: appsv1.ReplicaSetSpec{Replicas: ten, Selector: selector, Template: template}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for name, policy := range map[string]appsv1.PodManagementPolicyType{"web": appsv1.ParallelPodManagement, "growing": appsv1.OrderedReadyPodManagement} {
		own := map[string]string{"app": "set-" + name}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.StatefulSetSpec{
			Replicas: ten, Selector: &metav1.LabelSelector{MatchLabels: own}, Template: template, PodManagementPolicy: policy}}
		set.Spec.Template.Labels = own
		_, err = kube.AppsV1().StatefulSets(namespace).Create(ctx, set, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	_, err = kube.CoreV1().ReplicationControllers(namespace).Create(ctx, &corev1.ReplicationController{ObjectMeta: web, Spec: corev1.ReplicationControllerSpec{Replicas: ten, Selector: labels, Template: &template}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	job := &batchv1.Job{ObjectMeta: web, Spec: batchv1.JobSpec{Parallelism: ten, Completions: ten, Template: corev1.PodTemplateSpec{Spec: *template.Spec.DeepCopy()}}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err = kube.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// create makes a buffer of a strategy as a user writes it: empty limits stay.
func (r rule) create(ctx context.Context, namespace, name, strategy string) {
	GinkgoHelper()
	text, err := yaml.YAMLToJSON([]byte("{" + r.spec + ", provisioningStrategy: " + strategy + "}"))
	Expect(err).NotTo(HaveOccurred())
	body, err := json.Marshal(map[string]any{"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "CapacityBuffer", "metadata": map[string]string{"name": name}, "spec": json.RawMessage(text)})
	Expect(err).NotTo(HaveOccurred())
	Expect(allBuffers.RESTClient().Post().Namespace(namespace).Resource("capacitybuffers").Body(body).Do(ctx).Error()).To(Succeed(), r.what)
}

// computed is how many chunks each buffer has, by rule.
func computed(ctx context.Context, prefix string, namespaces []string) (map[string]string, error) {
	got := map[string]string{}
	for i, r := range rules {
		b, err := allBuffers.CapacityBuffers(namespaces[i]).Get(ctx, fmt.Sprintf("%s-%d", prefix, i), metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		ready := meta.FindStatusCondition(b.Status.Conditions, v1beta1.ConditionReadyForProvisioning)
		switch {
		case ready == nil:
			got[r.what] = ignored
		case ready.Status != metav1.ConditionTrue:
			got[r.what] = invalid
		default:
			got[r.what] = fmt.Sprint(ptr.Deref(b.Status.Replicas, -1))
		}
	}
	return got, nil
}

var _ = real("The rules of CapacityBuffers", func() {
	It("are those of cluster-autoscaler, except for the differences in the documents", func(ctx context.Context) {
		autoscale("--capacity-buffer-controller-enabled")
		space(ctx, "rules", "")
		workloads(ctx, "rules")
		namespaces, ours, theirs := make([]string, len(rules)), map[string]string{}, map[string]string{}
		for i, r := range rules {
			if namespaces[i] = "rules"; r.quota != "" {
				namespaces[i] = fmt.Sprintf("rules-%d", i)
				space(ctx, namespaces[i], r.quota)
			}
			r.create(ctx, namespaces[i], fmt.Sprintf("ours-%d", i), v1beta1.StrategyReserved)
			r.create(ctx, namespaces[i], fmt.Sprintf("theirs-%d", i), v1beta1.StrategyActive)
			ours[r.what], theirs[r.what] = r.ours, cmp.Or(r.theirs, r.ours)
		}
		Expect(ours).To(HaveLen(len(rules)), "each has a name of its own")
		Eventually(computed).WithContext(ctx).WithArguments("ours", namespaces).Should(Equal(ours))
		Eventually(computed).WithContext(ctx).WithArguments("theirs", namespaces).Should(Equal(theirs))
		differ := 0
		for _, r := range rules {
			if r.theirs != "" {
				differ++
			}
		}
		AddReportEntry("Rules of CapacityBuffers", fmt.Sprintf("%d compared, %d differ as documented", len(rules), differ), ReportEntryVisibilityAlways)
	})
})
