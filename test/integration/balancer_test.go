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
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
)

// plain is a valid Balancer; tests change it by merge patches.
const plain = `
apiVersion: balancer.x-k8s.io/v1alpha1
kind: Balancer
metadata: {name: plain, namespace: default}
spec:
  replicas: 10
  selector: {matchLabels: {app: shop}}
  policy: {policyName: priority, priorities: {targetOrder: [a, b]}}
  targets:
  - {name: a, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop-a}, minReplicas: 1, maxReplicas: 7}
  - {name: b, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop-b}, minReplicas: 1}
`

// originals are the targets of all the original's examples.
const originals = `
	{name: web-1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web-1}, minReplicas: 1, maxReplicas: 7},
	{name: web-2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web-2}, minReplicas: 1}`

func balancers() dynamic.ResourceInterface {
	return dynamic.NewForConfigOrDie(cluster.Config()).Resource(balancer.SchemeGroupVersion.WithResource("balancers")).Namespace("default")
}

// changed is plain with a merge patch over its spec.
func changed(patch string) *unstructured.Unstructured {
	GinkgoHelper()
	object, over := &unstructured.Unstructured{}, map[string]any{}
	Expect(yaml.Unmarshal([]byte(plain), &object.Object)).To(Succeed())
	Expect(yaml.Unmarshal([]byte(patch), &over)).To(Succeed())
	object.Object["spec"] = merged(object.Object["spec"].(map[string]any), over)
	return object
}

func merged(into, over map[string]any) map[string]any {
	for name, value := range over {
		inner, both := value.(map[string]any)
		was, is := into[name].(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case both && is:
			into[name] = merged(was, inner)
		default:
			into[name] = value
		}
	}
	return into
}

func try(ctx context.Context, object *unstructured.Unstructured) error {
	_, err := balancers().Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: "Strict"})
	return err
}

const twoTargets = `{name: a, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop-a}%s}, {name: b, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop-b}%s}`

// withMachines makes the second target a MachineDeployment.
func withMachines(more string) string {
	return "targets: [{name: a, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop-a}}, {name: b, scaleTargetRef: {apiVersion: machine.sapcloud.io/v1alpha1, kind: MachineDeployment, name: pool}" + more + "}]"
}

func withTargets(a, b string) string { return "targets: [" + fmt.Sprintf(twoTargets, a, b) + "]" }

var _ = Describe("A Balancer", func() {
	DescribeTable("is taken",
		func(ctx context.Context, patch string) {
			Expect(try(ctx, changed(patch))).To(Succeed())
		},
		Entry("as it is", "{}"),
		Entry("without replicas", "replicas: null"),
		Entry("with 0 replicas", "replicas: 0"),
		Entry("with as many as there can be", "replicas: 2147483647"),
		Entry("with an order that leaves a target out", withTargets("", "")+"\npolicy: {priorities: {targetOrder: [b, a]}}"),
		Entry("proportional, with a negative share", "policy: {policyName: proportional, priorities: null, proportions: {targetProportions: {a: -3, b: 5}}}"),
		Entry("even", "policy: {policyName: even, priorities: null}"),
		Entry("in tiers", "policy: {policyName: tiers, priorities: null, tiers: [{targets: [a], proportions: {a: 3}}, {targets: [b]}]}"),
		Entry("with percentages", withTargets(", minReplicas: 20%, maxReplicas: 100%", ", minReplicas: 3, maxReplicas: 50%")),
		Entry("with a fallback in seconds", "policy: {fallback: {startupTimeoutSeconds: 180}}"),
		Entry("with a fallback as a duration, and all else of it", "policy: {fallback: {startupTimeout: 1h30m, startCriterion: Ready, probe: 1, blockedWhen: {minCount: 2, percent: 10}, recoveryDelaySeconds: 0}}"),
		Entry("with a transition", "transition: {maxSurge: 0, maxUnavailable: 10%}"),
		Entry("with states and observers", withTargets(", state: Draining, observer: Status", ", state: Drained, observer: Pods")),
		Entry("with an observer of machines", withMachines(", observer: Machines")),
		Entry("with an observer of a workload's status, whatever it is", withMachines(", observer: Status")),
		Entry("with expressions only", "selector: {matchLabels: null, matchExpressions: [{key: app, operator: Exists}]}"),
		Entry("paused", "paused: true"),
	)

	DescribeTable("is refused, with what to do",
		func(ctx context.Context, patch string, says ...string) {
			err := try(ctx, changed(patch))
			Expect(errors.IsInvalid(err)).To(BeTrue(), "%v", err)
			for _, s := range says {
				Expect(err.Error()).To(ContainSubstring(s))
			}
		},
		Entry("an unknown name in the order", "policy: {priorities: {targetOrder: [a, c]}}", "targetOrder names a target that is not in targets", "add the target, or remove the name"),
		Entry("an unknown name in the proportions", "policy: {policyName: proportional, priorities: null, proportions: {targetProportions: {a: 1, c: 5}}}", "targetProportions names a target that is not in targets", "add the target, or remove the name"),
		Entry("an observer of machines of a Deployment", withTargets(", observer: Machines", ""), "observer Machines is for the kinds of machine.sapcloud.io", "remove observer"),
		Entry("an observer of pods of machines", withMachines(", observer: Pods"), "observer Pods for all others", "remove observer"),
		Entry("a name twice in the order", "policy: {priorities: {targetOrder: [a, a, b]}}", "must not contain a target twice"),
		Entry("an unknown name in a tier", "policy: {policyName: tiers, priorities: null, tiers: [{targets: [c]}]}", "policy.tiers names a target that is not in targets"),
		Entry("a name in two tiers", "policy: {policyName: tiers, priorities: null, tiers: [{targets: [a]}, {targets: [a, b]}]}", "only one tier"),
		Entry("a share of a target in another tier", "policy: {policyName: tiers, priorities: null, tiers: [{targets: [a], proportions: {b: 1}}]}", "not in this tier"),
		Entry("a share below 0 in a tier", "policy: {policyName: tiers, priorities: null, tiers: [{targets: [a], proportions: {a: -1}}]}", "from 0 to 1000000"),
		Entry("two targets of one name", "targets: [{name: a, scaleTargetRef: {kind: Deployment, name: x}}, {name: a, scaleTargetRef: {kind: Deployment, name: y}}]", "Duplicate value"),
		Entry("two targets on one workload", "targets: [{name: a, scaleTargetRef: {kind: Deployment, name: x}}, {name: b, scaleTargetRef: {kind: Deployment, name: x}}]", "same scaleTargetRef"),
		Entry("one target", "targets: [{name: a, scaleTargetRef: {kind: Deployment, name: x}}]", "at least 2"),
		Entry("a target without a workload", "targets: [{name: a, scaleTargetRef: {kind: Deployment, name: ''}}, {name: b, scaleTargetRef: {kind: Deployment, name: x}}]", "should be at least 1 chars long"),
		Entry("a minimum above the maximum", withTargets(", minReplicas: 5, maxReplicas: 3", ""), "must not be above maxReplicas"),
		Entry("a negative minimum", withTargets(", minReplicas: -1", ""), "use a number from 0"),
		Entry("a percentage that is none", withTargets(", maxReplicas: 101%", ""), `should match '^([0-9]|[1-9][0-9]|100)%$'`),
		Entry("a maximum beyond 32 bits", withTargets(", maxReplicas: 2147483648", ""), "use a number from 0 to 2147483647"),
		Entry("an unknown policy", "policy: {policyName: random}", "policyName", "supported values"),
		Entry("a policy without its block", "policy: {policyName: proportional, priorities: null}", "proportional requires the field proportions"),
		Entry("a policy with another's block", "policy: {proportions: {targetProportions: {a: 1, b: 1}}}", "proportional requires the field proportions, and other policies must not have it"),
		Entry("an empty selector", "selector: {matchLabels: null}", "matches every pod"),
		Entry("two timeouts", "policy: {fallback: {startupTimeoutSeconds: 180, startupTimeout: 3m}}", "exactly one of startupTimeoutSeconds"),
		Entry("no probe", "policy: {fallback: {startupTimeoutSeconds: 1, probe: 0}}", "greater than or equal to 1"),
		Entry("no timeout", "policy: {fallback: {probe: 1}}", "exactly one of startupTimeoutSeconds"),
		Entry("a timeout that is none", "policy: {fallback: {startupTimeout: -3m}}", "use a duration"),
		Entry("a negative timeout", "policy: {fallback: {startupTimeoutSeconds: -1}}", "greater than or equal to 0"),
		Entry("negative replicas", "replicas: -1", "greater than or equal to 0"),
		Entry("a transition that cannot move", "transition: {maxSurge: 0}", "no replica could move"),
		Entry("itself as a target", "targets: [{name: a, scaleTargetRef: {apiVersion: balancer.x-k8s.io/v1alpha1, kind: Balancer, name: plain}}, {name: b, scaleTargetRef: {kind: Deployment, name: x}}]", "must not be its own target"),
	)

	It("takes 64 targets with all there is, and no more", func(ctx context.Context) {
		many := func(n int) *unstructured.Unstructured {
			var targets, order []any
			for i := range n {
				name := strings.Repeat("x", 249) + fmt.Sprint("-", i)
				targets = append(targets, map[string]any{"name": name, "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}})
				order = append(order, name)
			}
			object := changed("{}")
			Expect(unstructured.SetNestedSlice(object.Object, targets, "spec", "targets")).To(Succeed())
			Expect(unstructured.SetNestedSlice(object.Object, order, "spec", "policy", "priorities", "targetOrder")).To(Succeed())
			return object
		}
		Expect(try(ctx, many(64))).To(Succeed())
		Expect(try(ctx, many(65))).To(MatchError(ContainSubstring("at most 64")))
	})

	It("with an unknown name in its proportions, stored by an earlier version, can still be scaled and paused, and is refused once its targets change", func(ctx context.Context) {
		crds := dynamic.NewForConfigOrDie(cluster.Config()).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		crd, err := crds.Get(ctx, "balancers.balancer.x-k8s.io", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		Expect(err).NotTo(HaveOccurred())
		unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "x-kubernetes-validations")
		Expect(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")).To(Succeed())
		_, err = crds.Update(ctx, crd, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		stray := func() *unstructured.Unstructured {
			return changed("policy: {policyName: proportional, priorities: null, proportions: {targetProportions: {a: 1, c: 5}}}")
		}
		Eventually(func() error { return try(ctx, stray()) }, 10*time.Second).Should(Succeed())
		_, err = balancers().Create(ctx, stray(), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(balancers().Delete(ctx, "plain", metav1.DeleteOptions{})).To(Succeed())
		})
		Expect(cluster.Apply(ctx, "kubernetes/crds")).To(Succeed())
		Eventually(func() error { return try(ctx, stray()) }, 10*time.Second).Should(MatchError(ContainSubstring("targetProportions names a target")))

		out, err := kubectl("", "scale", "balancer/plain", "--replicas=12")
		Expect(err).NotTo(HaveOccurred(), out)
		patch := func(merge string) error {
			_, err := balancers().Patch(ctx, "plain", types.MergePatchType, []byte(merge), metav1.PatchOptions{})
			return err
		}
		Expect(patch(`{"spec":{"paused":true}}`)).To(Succeed())
		Expect(patch(`{"spec":{"policy":{"proportions":{"targetProportions":{"a":2}}}}}`)).To(MatchError(ContainSubstring("targetProportions names a target")))
		Expect(patch(`{"spec":{"policy":{"proportions":{"targetProportions":{"b":2,"c":null}}}}}`)).To(Succeed())
	})

	It("is scaled through its subresource and by kubectl, replicas left out included", func(ctx context.Context) {
		_, err := balancers().Create(ctx, changed("replicas: null"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(balancers().Delete(ctx, "plain", metav1.DeleteOptions{})).To(Succeed())
		})
		client := versioned.NewForConfigOrDie(cluster.Config()).BalancerV1alpha1().Balancers("default")
		scale, err := client.GetScale(ctx, "plain", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(scale.Spec.Replicas).To(BeEquivalentTo(1))

		out, err := kubectl("", "scale", "balancer/plain", "--replicas=12")
		Expect(err).NotTo(HaveOccurred(), out)
		stored, err := client.Get(ctx, "plain", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(stored.Spec.Replicas).To(HaveValue(BeEquivalentTo(12)))

		stored.Status = balancer.BalancerStatus{Replicas: 12, Selector: "app=shop"}
		_, err = client.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		scale, err = client.GetScale(ctx, "plain", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(scale.Status.Selector).To(Equal("app=shop"))
		Expect(scale.Status.Replicas).To(BeEquivalentTo(12))
		Expect(kubectl("", "get", "balancer", "plain")).To(MatchRegexp(`NAME +REPLICAS +READY +POLICY +BALANCED +FALLBACK +AGE\nplain +12 +priority `))
		Expect(kubectl("", "explain", "balancer.spec.policy.fallback.probe")).To(ContainSubstring("prefer 1"))
	})

	DescribeTable("is stored as the original's manifests write it, not a field more, and as the design's text does",
		func(ctx context.Context, spec string) {
			object, written := &unstructured.Unstructured{}, map[string]any{}
			Expect(yaml.Unmarshal([]byte(spec), &written)).To(Succeed())
			text, err := yaml.Marshal(map[string]any{
				"apiVersion": "balancer.x-k8s.io/v1alpha1", "kind": "Balancer", "metadata": map[string]any{"name": "as-it-was"}, "spec": written})
			Expect(err).NotTo(HaveOccurred())
			out, err := kubectl(string(text), "apply", "--validate=strict", "-o=yaml", "-f", "-")
			Expect(err).NotTo(HaveOccurred(), out)
			DeferCleanup(func(ctx context.Context) {
				Expect(balancers().Delete(ctx, "as-it-was", metav1.DeleteOptions{})).To(Succeed())
			})
			Expect(yaml.Unmarshal([]byte(out), &object.Object)).To(Succeed())
			Expect(asJSON(object.Object["spec"])).To(MatchJSON(asJSON(written)))
			Expect(kubectl(string(text), "apply", "--validate=strict", "-f", "-")).To(ContainSubstring("unchanged"))
		},
		Entry("priority", `{replicas: 5, selector: {matchLabels: {srv: web}}, targets: [`+originals+`],
			policy: {policyName: priority, priorities: {targetOrder: [web-1, web-2]}, fallback: {startupTimeoutSeconds: 180}}}`),
		Entry("proportions", `{replicas: 10, selector: {matchLabels: {srv: web}}, targets: [`+originals+`],
			policy: {policyName: proportional, proportions: {targetProportions: {web-1: 50, web-2: 50}}, fallback: {startupTimeoutSeconds: 180}}}`),
		Entry("the text's timeout", `{replicas: 10, selector: {matchLabels: {srv: web}}, targets: [`+originals+`],
			policy: {policyName: priority, priorities: {targetOrder: [web-1, web-2]}, fallback: {startupTimeout: 3m0s}}}`),
		Entry("a reference to the core group", `{replicas: 1, selector: {matchLabels: {srv: web}}, targets: [
			{name: web-1, scaleTargetRef: {kind: ReplicationController, name: web-1}}, {name: web-2, scaleTargetRef: {kind: ReplicationController, name: web-2}}],
			policy: {policyName: priority, priorities: {targetOrder: [web-1, web-2]}}}`),
	)

	It("applies from every example, and comes back through the typed client unchanged", func(ctx context.Context) {
		files, err := filepath.Glob("../../examples/balancer-*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(len(files)).To(BeNumerically(">=", 3))
		for _, file := range files {
			By(filepath.Base(file))
			out, err := kubectl("", "apply", "--dry-run=server", "--validate=strict", "-f", file)
			Expect(err).NotTo(HaveOccurred(), out)
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			for document := range strings.SplitSeq(string(text), "\n---\n") {
				throughClient(document)
			}
		}
	})
})

// throughClient wants that a typed client neither loses nor adds a field of a Balancer's spec.
func throughClient(document string) {
	GinkgoHelper()
	raw, typed := &unstructured.Unstructured{}, &balancer.Balancer{}
	Expect(yaml.Unmarshal([]byte(document), &raw.Object)).To(Succeed())
	if raw.GetKind() != "Balancer" {
		return
	}
	Expect(yaml.UnmarshalStrict([]byte(document), typed)).To(Succeed())
	back, err := json.Marshal(typed.Spec)
	Expect(err).NotTo(HaveOccurred())
	Expect(back).To(MatchJSON(asJSON(raw.Object["spec"])))
}
