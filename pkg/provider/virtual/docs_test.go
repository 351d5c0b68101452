// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"os"
	"regexp"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var _ = Describe("What is written about it", func() {
	read := func(path string) string {
		GinkgoHelper()
		raw, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		return string(raw)
	}
	// usable parses every class and every ConfigMap of faults in some YAML documents, and counts them.
	usable := func(documents []string) int {
		GinkgoHelper()
		count := 0
		for _, document := range documents {
			var class v1alpha1.MachineClass
			Expect(yaml.Unmarshal([]byte(document), &class)).To(Succeed())
			switch class.Kind {
			case "MachineClass":
				_, err := ParseSpec(class.ProviderSpec.Raw)
				Expect(err).NotTo(HaveOccurred(), class.Name)
				count++
			case "ConfigMap":
				var config corev1.ConfigMap
				Expect(yaml.Unmarshal([]byte(document), &config)).To(Succeed())
				Expect(config.Name).To(Equal(FaultsConfigMap))
				faults, err := ParseFaults(config.Data)
				Expect(err).NotTo(HaveOccurred())
				Expect(faults).NotTo(Equal(Faults{}))
				count++
			}
		}
		return count
	}

	It("can be used as it is", func() {
		manual := read("../../../docs/virtual-provider.md")
		var blocks []string
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(manual, -1) {
			blocks = append(blocks, block[1])
		}
		Expect(usable(blocks)).To(Equal(2))
		Expect(usable(strings.Split(read("../../../examples/three-zones.yaml"), "\n---\n"))).To(Equal(3))
	})

	It("has one line for each field and each fault", func() {
		manual := read("../../../docs/virtual-provider.md")
		_, noField := ParseSpec([]byte(`{"?":0}`))
		_, noFault := ParseFaults(map[string]string{FaultsKey: `{"zones":{"z":{"?":0}}}`})
		_, noLine := ParseFaults(map[string]string{FaultsKey: `{"registry":{"?":0}}`})
		count := 0
		for _, err := range []error{noField, noFault, noLine} {
			_, known, told := strings.Cut(err.Error(), "known are ")
			Expect(told).To(BeTrue())
			for name := range strings.SplitSeq(known, ", ") {
				Expect(manual).To(MatchRegexp("(?m)^\\|[^|]*[` {]"+name+"[`:]"), name)
				count++
			}
		}
		Expect(count).To(Equal(21))
	})
})
