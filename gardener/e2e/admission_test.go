// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

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
		Eventually(func() error { return seed.Create(ctx, written("wrong", 10, true), client.DryRunAll) }).WithContext(ctx).
			Should(MatchError(And(ContainSubstring("spec.extensions[0].providerConfig.pools[0].excess"), ContainSubstring("write at most 9"))))
		Expect(seed.Create(ctx, written("right", 2, true))).To(Succeed())
		Expect(seed.Create(ctx, written("without", 10, false))).To(Succeed(), "a Shoot without the extension is not sent")
		Expect(rightsProblems(admissionProgram, admissionNamespace, admissionExcuses, charts.AdmissionRuntime, charts.AdmissionApplication)).To(BeEmpty())
	})
})

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
	Eventually(func() error { return seed.Create(ctx, written("probe", 2, false), client.DryRunAll) }).WithContext(ctx).Should(Succeed())
}

// written is a Shoot as an owner writes it, with the label that Gardener adds.
func written(name string, excess int, labelled bool) *unstructured.Unstructured {
	GinkgoHelper()
	shoot := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: %s, namespace: default}
spec:
  extensions:
  - {type: evenkeel, providerConfig: %s}
  provider: {type: local, workers: [{name: pool, minimum: 3, maximum: 9}]}
`, name, config(fmt.Sprintf(`[{"name":"pool","excess":%d}]`, excess))), shoot)).To(Succeed())
	if labelled {
		shoot.SetLabels(map[string]string{v1beta1constants.LabelExtensionExtensionTypePrefix + "evenkeel": "true"})
	}
	return shoot
}
