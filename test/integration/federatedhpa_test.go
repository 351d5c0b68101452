// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// plainFederated is a valid FederatedHorizontalPodAutoscaler; tests change it by merge patches.
const plainFederated = `
apiVersion: autoscaling.evenkeel.dev/v1alpha1
kind: FederatedHorizontalPodAutoscaler
metadata: {name: plain, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  minReplicas: 3
  maxReplicas: 30
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
`

func federatedClient() dynamic.ResourceInterface {
	return dynamic.NewForConfigOrDie(cluster.Config()).Resource(v1alpha1.SchemeGroupVersion.WithResource("federatedhorizontalpodautoscalers")).Namespace("default")
}

func changedFederated(patch string) *unstructured.Unstructured {
	GinkgoHelper()
	object, over := &unstructured.Unstructured{}, map[string]any{}
	Expect(yaml.Unmarshal([]byte(plainFederated), &object.Object)).To(Succeed())
	Expect(yaml.Unmarshal([]byte(patch), &over)).To(Succeed())
	object.Object["spec"] = merged(object.Object["spec"].(map[string]any), over)
	return object
}

// everyMetric has each field of autoscaling/v2.
const everyMetric = `
metrics:
- {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
- {type: ContainerResource, containerResource: {name: memory, container: a, target: {type: AverageValue, averageValue: 1Gi}}}
- {type: Pods, pods: {metric: {name: requests, selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: In, values: [d]}]}}, target: {type: AverageValue, averageValue: 100m}}}
- {type: Object, object: {describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: shop}, metric: {name: hits}, target: {type: Value, value: 10k}}}
- {type: External, external: {metric: {name: queue}, target: {type: AverageValue, averageValue: "30"}}}
behavior:
  scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, tolerance: "0.05", policies: [{type: Percent, value: 100, periodSeconds: 15}]}
  scaleDown: {stabilizationWindowSeconds: 300, selectPolicy: Min, policies: [{type: Pods, value: 4, periodSeconds: 60}]}
`

// looseMetrics is what autoscaling/v2 takes, too.
const looseMetrics = `
metrics:
- {type: External, external: {metric: {name: queue, selector: null}, target: {type: AverageValue, averageValue: 0.5, value: null}}, resource: null}
- {type: External, external: {metric: {name: queue}, target: {type: Value, value: 30}}}
behavior: {scaleUp: null, scaleDown: {tolerance: 0.05, policies: null}}
`

const workloadTemplate = `placement: {mode: Template, template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: shop}, spec: {selector: {matchLabels: {app: shop}}}}}`

var _ = Describe("A FederatedHorizontalPodAutoscaler", func() {
	tryFederated := func(ctx context.Context, patch string) error {
		_, err := federatedClient().Create(ctx, changedFederated(patch), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: "Strict"})
		return err
	}

	DescribeTable("is taken",
		func(ctx context.Context, patch string) { Expect(tryFederated(ctx, patch)).To(Succeed()) },
		Entry("plain", "{}"),
		Entry("without a minimum", "minReplicas: null"),
		Entry("with zero", "{minReplicas: 0, minPolicy: AllowZero}"),
		Entry("with preferences", `clusters: [{name: '*', maxReplicas: 9}, {name: site, tier: 0, weight: 3, minReplicas: 2, maxReplicas: 2}]`),
		Entry("with metrics of kinds and fields to come", `metrics: [{type: Rumour, rumour: {louder: true}}]`),
		Entry("with metrics of every kind and field", everyMetric),
		Entry("with quantities that are numbers, and empty fields", looseMetrics),
		Entry("lending", "unreachable: {policy: ReleaseAfter, afterSeconds: 60, released: [old]}"),
		Entry("with a workload", workloadTemplate),
		Entry("with all switches", "{joining: {onDemand: true, quietSeconds: 1}, rebalance: {cooldownSeconds: 0, maxStepPercent: 1, headroom: 0, startTimeoutSeconds: 1, probe: 0, minima: true}, deletionPolicy: Orphan, adopt: true, paused: true}"),
	)

	DescribeTable("is refused, with what to do",
		func(ctx context.Context, patch string, says ...string) {
			err := tryFederated(ctx, patch)
			Expect(errors.IsInvalid(err)).To(BeTrue(), "%v", err)
			for _, s := range says {
				Expect(err.Error()).To(ContainSubstring(s))
			}
		},
		Entry("a minimum above the maximum", "minReplicas: 31", "lower minReplicas or raise maxReplicas"),
		Entry("a default minimum above the maximum", "maxReplicas: 0", "greater than or equal to 1"),
		Entry("zero without its policy", "minReplicas: 0", "needs minPolicy AllowZero"),
		Entry("a cluster's minimum above its maximum", "clusters: [{name: a, minReplicas: 3, maxReplicas: 2}]", "lower minReplicas or raise maxReplicas"),
		Entry("a cluster twice", "clusters: [{name: a}, {name: a}]", "Duplicate value"),
		Entry("an unknown policy", "minPolicy: Loose", "supported values"),
		Entry("lending without a time", "unreachable: {policy: ReleaseAfter}", "ReleaseAfter needs afterSeconds"),
		Entry("a time without lending", "unreachable: {afterSeconds: 3}", "Hold must not have it"),
		Entry("a mode without its template", "placement: {mode: Template}", "Template needs a template"),
		Entry("a template without its mode", strings.Replace(workloadTemplate, "mode: Template, ", "", 1), "External must not have one"),
		Entry("another workload's template", strings.Replace(workloadTemplate, "name: shop}, spec", "name: other}, spec", 1), "the apiVersion, kind and name of scaleTargetRef"),
		Entry("a target without a name", "scaleTargetRef: {name: ''}", "should be at least 1 chars long"),
		Entry("a weight of 0", "clusters: [{name: a, weight: 0}]", "greater than or equal to 1"),
	)

	It("prints what matters, and explains itself", func(ctx context.Context) {
		_, err := federatedClient().Create(ctx, changedFederated("{}"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(federatedClient().Delete(ctx, "plain", metav1.DeleteOptions{})).To(Succeed())
		})
		Expect(kubectl("", "get", "fhpa", "plain")).To(MatchRegexp(`NAME +TARGET +MIN +MAX +CURRENT +DESIRED +READY +LIMITED +AGE\nplain +shop +3 +30 `))
		Expect(kubectl("", "explain", "fhpa.spec.unreachable.policy")).To(ContainSubstring("OverCommitted"))
		Expect(kubectl("", "explain", "fhpa.spec.metrics")).To(MatchRegexp(`(?s)containerResource.*external.*object.*pods.*resource.*type`))
		Expect(kubectl("", "explain", "fhpa.spec.metrics.resource.target.averageUtilization")).To(ContainSubstring("<integer>"))
		Expect(kubectl("", "explain", "fhpa.spec.behavior.scaleDown")).To(MatchRegexp(`(?s)policies.*stabilizationWindowSeconds.*tolerance`))
	})

	It("applies from every example, and comes back through the typed client unchanged", func() {
		files, err := filepath.Glob("../../examples/federated-*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(len(files)).To(BeNumerically(">=", 3))
		for _, file := range files {
			By(filepath.Base(file))
			out, err := kubectl("", "apply", "--dry-run=server", "--validate=strict", "-f", file)
			Expect(err).NotTo(HaveOccurred(), out)
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			for document := range strings.SplitSeq(string(text), "\n---\n") {
				federatedThroughClient(document)
			}
		}
	})
})

func federatedThroughClient(document string) {
	GinkgoHelper()
	raw, typed := &unstructured.Unstructured{}, &v1alpha1.FederatedHorizontalPodAutoscaler{}
	Expect(yaml.Unmarshal([]byte(document), &raw.Object)).To(Succeed())
	if raw.GetKind() != "FederatedHorizontalPodAutoscaler" {
		return
	}
	Expect(yaml.UnmarshalStrict([]byte(document), typed)).To(Succeed())
	back, err := json.Marshal(typed.Spec)
	Expect(err).NotTo(HaveOccurred())
	Expect(back).To(MatchJSON(asJSON(raw.Object["spec"])))
}

// What the escrow rests on: what was sent and decided on something that is gone never has an effect.
var _ = Describe("Server-side apply", func() {
	hpas := func() dynamic.ResourceInterface {
		return dynamic.NewForConfigOrDie(cluster.Config()).Resource(schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}).Namespace("default")
	}
	hpa := func(hi int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": map[string]any{"name": "late", "namespace": "default"},
			"spec": map[string]any{"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "late"}, "minReplicas": int64(1), "maxReplicas": hi},
		}}
	}
	apply := func(ctx context.Context, base *unstructured.Unstructured, hi int64) (*unstructured.Unstructured, error) {
		wanted := hpa(hi)
		wanted.SetResourceVersion(base.GetResourceVersion())
		wanted.SetUID(base.GetUID())
		return hpas().Apply(ctx, "late", wanted, metav1.ApplyOptions{FieldManager: "evenkeel-federatedhpa", Force: true})
	}

	It("has no effect on a later version, nor where the object was removed, nor after it was made again", func(ctx context.Context) {
		first, err := hpas().Create(ctx, hpa(5), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		second, err := apply(ctx, first, 6)
		Expect(err).NotTo(HaveOccurred())
		_, err = apply(ctx, first, 7)
		Expect(errors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(hpas().Delete(ctx, "late", metav1.DeleteOptions{})).To(Succeed())
		_, err = apply(ctx, second, 8)
		Expect(errors.IsConflict(err)).To(BeTrue(), "%v", err)
		_, err = hpas().Get(ctx, "late", metav1.GetOptions{})
		Expect(errors.IsNotFound(err)).To(BeTrue(), "%v", err)
		_, err = hpas().Create(ctx, hpa(3), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = apply(ctx, second, 9)
		Expect(errors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(hpas().Delete(ctx, "late", metav1.DeleteOptions{})).To(Succeed())
	})
})

const scaledDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: scaled}
spec:
  replicas: 3
  selector: {matchLabels: {app: scaled}}
  template: {metadata: {labels: {app: scaled}}, spec: {containers: [{name: a, image: a}]}}
`

// What the hub recognizes a workload by that it has scaled to 0.
var _ = Describe("The scale of a workload", func() {
	const hub = "evenkeel-federatedhpa-leave"

	It("shows in the managed fields whether the hub wrote it last", func(ctx context.Context) {
		all := dynamic.NewForConfigOrDie(cluster.Config()).Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace("default")
		d := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(scaledDeployment), &d.Object)).To(Succeed())
		d, err := all.Create(ctx, d, metav1.CreateOptions{FieldManager: "user"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) { Expect(all.Delete(ctx, "scaled", metav1.DeleteOptions{})).To(Succeed()) })
		patch := func(version string, replicas int) (*unstructured.Unstructured, error) {
			text := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"replicas":%d}}`, version, replicas)
			return all.Patch(ctx, "scaled", types.MergePatchType, text, metav1.PatchOptions{FieldManager: hub})
		}
		scaleBy := func(manager string, replicas int32) *unstructured.Unstructured {
			scales := kubernetes.NewForConfigOrDie(cluster.Config()).AppsV1().Deployments("default")
			s, err := scales.GetScale(ctx, "scaled", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			s.Spec.Replicas = replicas
			_, err = scales.UpdateScale(ctx, "scaled", s, metav1.UpdateOptions{FieldManager: manager})
			Expect(err).NotTo(HaveOccurred())
			d, err := all.Get(ctx, "scaled", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			return d
		}
		byHub := ContainElement(HaveField("Manager", hub))
		zeroed, err := patch(d.GetResourceVersion(), 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(zeroed.GetManagedFields()).To(byHub)
		_, err = patch(d.GetResourceVersion(), 0)
		Expect(errors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(scaleBy("kube-controller-manager", 2).GetManagedFields()).NotTo(byHub)
		zeroed = scaleBy("kubectl", 0)
		Expect(zeroed.GetManagedFields()).NotTo(byHub)
		one, err := patch(zeroed.GetResourceVersion(), 1)
		Expect(err).NotTo(HaveOccurred())
		Expect(one.GetManagedFields()).To(byHub)
		Expect(scaleBy("kubectl", 0).GetManagedFields()).NotTo(byHub)
	})
})

var _ = Describe("The federated autoscaler's accounts", func() {
	It("may do what they need, and no more", func(ctx context.Context) {
		Expect(cluster.Apply(ctx, "kubernetes/deploy/federation-hub/access.yaml", "kubernetes/deploy/federation-member/access.yaml")).To(Succeed())
		inHub, inMember := kubernetes.NewForConfigOrDie(as("evenkeel-federatedhpa")), kubernetes.NewForConfigOrDie(as("evenkeel-federation"))
		_, err := inHub.CoreV1().Secrets("evenkeel-clusters").List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, other := range []string{"default", "kube-system", ""} {
			_, err = inHub.CoreV1().Secrets(other).List(ctx, metav1.ListOptions{})
			Expect(errors.IsForbidden(err)).To(BeTrue(), "%v", err)
		}
		_, err = inMember.AutoscalingV2().HorizontalPodAutoscalers("").List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = inMember.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{})
		Expect(errors.IsForbidden(err)).To(BeTrue(), "%v", err)
		_, err = inMember.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		Expect(err).NotTo(HaveOccurred())
	})

	It("may write workloads in the namespaces that the member's operator lists, and nowhere else", func(ctx context.Context) {
		Expect(cluster.Apply(ctx, "kubernetes/deploy/federation-member/access.yaml")).To(Succeed())
		inMember := kubernetes.NewForConfigOrDie(as("evenkeel-federation"))
		place := func(namespace string) error {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "placed"}}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "placed"}}
			d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "a"}}
			_, err := inMember.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		Expect(errors.IsForbidden(place("default"))).To(BeTrue(), "by default the hub places nothing")
		Expect(cluster.Apply(ctx, "kubernetes/deploy/federation-placement/access.yaml")).To(Succeed())
		Eventually(place).WithArguments("default").Should(Succeed())
		Expect(errors.IsForbidden(place("kube-system"))).To(BeTrue())
		_, err := inMember.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
	})
})

var _ = Describe("The policy on placement", func() {
	// tenant may write federated objects in a namespace, and create these workloads there.
	tenant := func(ctx context.Context, name string, workloads ...string) dynamic.ResourceInterface {
		GinkgoHelper()
		rbac := kubernetes.NewForConfigOrDie(cluster.Config()).RbacV1()
		rules := []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"federatedhorizontalpodautoscalers"}, Verbs: []string{"create", "update", "get"}}}
		if len(workloads) > 0 {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: workloads, Verbs: []string{"create"}})
		}
		_, err := rbac.Roles("default").Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = rbac.RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		config := rest.CopyConfig(cluster.Config())
		config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
		return dynamic.NewForConfigOrDie(config).Resource(v1alpha1.SchemeGroupVersion.WithResource("federatedhorizontalpodautoscalers")).Namespace("default")
	}
	try := func(ctx context.Context, client dynamic.ResourceInterface, patch string) error {
		_, err := client.Create(ctx, changedFederated(patch), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}

	It("has whoever writes a template hold the right to create that workload", func(ctx context.Context) {
		Expect(cluster.Apply(ctx, "kubernetes/deploy/federation-hub/policy.yaml")).To(Succeed())
		scaler, deployer := tenant(ctx, "scaler"), tenant(ctx, "deployer", "deployments")
		// The API server looks for policies once a second.
		Eventually(func() bool { return errors.IsForbidden(try(ctx, scaler, workloadTemplate)) }, 30*time.Second, 50*time.Millisecond).Should(BeTrue())
		Expect(try(ctx, scaler, workloadTemplate)).To(MatchError(ContainSubstring("the right to create deployments in the namespace default")))
		Expect(try(ctx, scaler, "{}")).To(Succeed(), "without a template there is nothing to place")
		Eventually(try).WithContext(ctx).WithArguments(deployer, workloadTemplate).Should(Succeed())
		stateful := "{scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: shop}, " + strings.ReplaceAll(workloadTemplate, "kind: Deployment", "kind: StatefulSet") + "}"
		Expect(errors.IsForbidden(try(ctx, deployer, stateful))).To(BeTrue(), "the right to another kind does not count")
		By("changing an object that has a template")
		made, err := deployer.Create(ctx, changedFederated(workloadTemplate), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(federatedClient().Delete(ctx, made.GetName(), metav1.DeleteOptions{})).To(Succeed())
		})
		change := func(value any, path ...string) error {
			o := made.DeepCopy()
			Expect(unstructured.SetNestedField(o.Object, value, append([]string{"spec"}, path...)...)).To(Succeed())
			_, err := scaler.Update(ctx, o, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		Expect(change(int64(40), "maxReplicas")).To(Succeed())
		Expect(errors.IsForbidden(change("evil", "placement", "template", "spec", "template", "spec", "hostNetwork"))).To(BeTrue())
		Expect(errors.IsForbidden(change(map[string]any{"matchLabels": map[string]any{"tier": "production"}}, "clusterSelector"))).To(BeTrue())
	})
})
