// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var _ = Describe("The CRDs", Ordered, func() {
	var stockFolder string

	BeforeAll(func() {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gardener/machine-controller-manager").Output()
		Expect(err).NotTo(HaveOccurred())
		stockFolder = filepath.Join(strings.TrimSpace(string(out)), "kubernetes", "crds")
	})

	DescribeTable("are machine-controller-manager's but for our additions",
		func(resource string, specAdds, statusAdds, columnAdds []string) {
			name := "machine.sapcloud.io_" + resource + ".yaml"
			ours, stock := readCRD(filepath.Join("../../../../kubernetes/crds", name)), readCRD(filepath.Join(stockFolder, name))
			version, stockVersion := &ours.Spec.Versions[0], &stock.Spec.Versions[0]
			schema := version.Schema.OpenAPIV3Schema

			take(schema.Properties["spec"].Properties, specAdds)
			take(schema.Properties["status"].Properties, statusAdds)
			schema.Description = stockVersion.Schema.OpenAPIV3Schema.Description
			Expect(columns(version)).To(ConsistOf(append(columns(stockVersion), columnAdds...)))
			version.AdditionalPrinterColumns = stockVersion.AdditionalPrinterColumns
			if slices.Contains(statusAdds, "selector") {
				Expect(version.Subresources.Scale.LabelSelectorPath).To(HaveValue(Equal(".status.selector")))
				version.Subresources.Scale.LabelSelectorPath = nil
			}
			ours.Annotations = stock.Annotations

			Expect(ours).To(Equal(stock))
		},
		Entry(nil, "machinedeployments", []string{"excessReplicas", "reserveWitness"}, []string{"excessReplicas", "readyExcessReplicas", "selector"},
			[]string{"Excess .spec.excessReplicas", "Reserve .status.readyExcessReplicas"}),
		Entry(nil, "machines", nil, nil, []string{`Reserve .spec.nodeTemplate.metadata.annotations['evenkeel\.machine\.sapcloud\.io/reserve']`}),
		Entry(nil, "machinesets", nil, nil, nil),
		Entry(nil, "machineclasses", nil, nil, nil),
	)
})

func readCRD(file string) *apiextensions.CustomResourceDefinition {
	GinkgoHelper()
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	crd := &apiextensions.CustomResourceDefinition{}
	Expect(yaml.UnmarshalStrict(content, crd)).To(Succeed())
	return crd
}

// take removes properties, each of which has to be there.
func take(properties map[string]apiextensions.JSONSchemaProps, names []string) {
	GinkgoHelper()
	for _, name := range names {
		Expect(properties).To(HaveKey(name))
		delete(properties, name)
	}
}

func columns(version *apiextensions.CustomResourceDefinitionVersion) []string {
	var out []string
	for _, c := range version.AdditionalPrinterColumns {
		out = append(out, c.Name+" "+c.JSONPath)
	}
	return out
}
