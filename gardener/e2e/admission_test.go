// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/evenkeel/evenkeel/gardener/charts"
)

var _ = Describe("The admission component", func() {
	It("refuses a wrong providerConfig where Shoots are written", func(ctx context.Context) {
		shootKind(ctx)
		installProgram(ctx, admissionProgram, admissionNamespace, charts.AdmissionRuntime, charts.AdmissionApplication)
		tooMany := config(`[{"name":"pool","excess":10}]`)
		Eventually(func() error { return seed.Create(ctx, written("wrong", tooMany, true), client.DryRunAll) }).WithContext(ctx).
			Should(MatchError(And(ContainSubstring("spec.extensions[0].providerConfig.pools[0].excess"), ContainSubstring("write at most 9"))))
		for _, wrong := range wrongConfigs() {
			Expect(seed.Create(ctx, written("wrong", wrong, true), client.DryRunAll)).
				To(MatchError(And(ContainSubstring("spec.extensions[0].providerConfig"), ContainSubstring("denied"), MatchRegexp("write|remove|must"))), wrong)
		}
		Expect(seed.Create(ctx, written("right", reserveOfTwo, true))).To(Succeed())
		Expect(seed.Create(ctx, written("without", tooMany, false))).To(Succeed(), "a Shoot without the extension is not sent")
		Expect(rightsProblems(admissionProgram, admissionNamespace, admissionExcuses, charts.AdmissionRuntime, charts.AdmissionApplication)).To(BeEmpty())
	})
})

// wrongConfigs are wrong in a way of their own each, for a Shoot with a pool of three to nine machines and Kubernetes 1.34.
func wrongConfigs() (all []string) {
	for _, pool := range []string{
		`{"name":"pol","excess":2}`, `{"excess":2}`, `{"name":"pool"}`, `{"name":"pool","excess":2},{"name":"pool","excess":2}`,
		`{"name":"pool","excess":2,"bounds":"3:9:2"}`, `{"name":"pool","excess":-1}`, `{"name":"pool","excess":"5 %"}`,
		`{"name":"pool","excess":"some"}`, `{"name":"pool","excess":""}`, `{"name":"pool","excess":"cpu="}`, `{"name":"pool","excess":"max(1)"}`,
		`{"name":"pool","excess":"max(10,5%)"}`, `{"name":"pool","excess":2.5}`, `{"name":"pool","bounds":"3-9"}`, `{"name":"pool","bounds":"9:3:1"}`,
		`{"name":"pool","bounds":"3:9"}`, `{"name":"pool","bounds":"3:9:many"}`, `{"name":"pool","bounds":"3:10:1"}`, `{"name":"pool","bounds":"2:9:1"}`,
		`{"name":"pool","bounds":"3:6:7"}`, `{"name":"pool","bounds":"6:6:1"}`, `{"name":"pool","excess":1,"balance":"Always"}`,
		`{"name":"pool","excess":1,"maximum":4}`,
	} {
		all = append(all, config("["+pool+"]"))
	}
	header, _, _ := strings.Cut(config("[]"), `"pools"`)
	for _, field := range []string{`"accounting":"inclusive"`, `"autoscaler":"upstream"`, `"autoscaler":"karpenter"`, `"pool":[]`, `"pools":{}`} {
		all = append(all, header+field+"}")
	}
	return append(all, `{}`, `{"apiVersion":"evenkeel.extensions.gardener.cloud/v1","kind":"EvenkeelConfig"}`)
}

// shootKind has the API server take Shoots. gardener-apiserver is not there: a CRD stands for it.
func shootKind(ctx context.Context) {
	GinkgoHelper()
	crd := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shoots.core.gardener.cloud, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: core.gardener.cloud
  names: {kind: Shoot, listKind: ShootList, plural: shoots, singular: shoot}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`), crd)).To(Succeed())
	Expect(createOrReplace(ctx, seed, crd)).To(Succeed())
	Eventually(func() error { return seed.Create(ctx, written("probe", reserveOfTwo, false), client.DryRunAll) }).WithContext(ctx).Should(Succeed())
}

// written is a Shoot as an owner writes it, with the label that Gardener adds.
func written(name, config string, labelled bool) *unstructured.Unstructured {
	GinkgoHelper()
	shoot := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: %s, namespace: default}
spec:
  extensions:
  - {type: evenkeel, providerConfig: %s}
  kubernetes: {version: 1.34.0}
  provider: {type: local, workers: [{name: pool, minimum: 3, maximum: 9}]}
`, name, config), shoot)).To(Succeed())
	if labelled {
		shoot.SetLabels(map[string]string{v1beta1constants.LabelExtensionExtensionTypePrefix + "evenkeel": "true"})
	}
	return shoot
}
