// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"bytes"
	"os"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/validation"
)

const examples = "../../../../examples/gardener/"

var _ = Describe("The examples", func() {
	It("have a valid providerConfig", func() {
		text, err := os.ReadFile(examples + "shoot.yaml")
		Expect(err).NotTo(HaveOccurred())
		var shoot gardencorev1beta1.Shoot
		Expect(yaml.UnmarshalStrict(text, &shoot)).To(Succeed())
		Expect(shoot.Spec.Extensions).To(ConsistOf(HaveField("Type", v1alpha1.ExtensionType)))
		config, err := v1alpha1.Decode(shoot.Spec.Extensions[0].ProviderConfig.Raw)
		Expect(err).NotTo(HaveOccurred())
		Expect(config.Pools).To(HaveLen(2))
		Expect(validation.Validate(config, &shoot.Spec, field.NewPath("providerConfig"))).To(BeEmpty())
	})

	It("register the extension for Shoots whose owners ask for it", func() {
		text, err := os.ReadFile(examples + "controllerregistration.yaml")
		Expect(err).NotTo(HaveOccurred())
		documents := bytes.Split(text, []byte("\n---\n"))
		Expect(documents).To(HaveLen(2))
		var deployment gardencorev1.ControllerDeployment
		Expect(yaml.UnmarshalStrict(documents[0], &deployment)).To(Succeed())
		var registration gardencorev1beta1.ControllerRegistration
		Expect(yaml.UnmarshalStrict(documents[1], &registration)).To(Succeed())
		Expect(registration.Spec.Deployment.DeploymentRefs).To(ConsistOf(HaveField("Name", deployment.Name)))
		Expect(registration.Spec.Resources).To(ConsistOf(And(
			HaveField("Kind", "Extension"), HaveField("Type", v1alpha1.ExtensionType), HaveField("AutoEnable", BeEmpty()),
			HaveField("Lifecycle.Reconcile", HaveValue(Equal(gardencorev1beta1.AfterKubeAPIServer))),
		)))

		text, err = os.ReadFile(examples + "extension.yaml")
		Expect(err).NotTo(HaveOccurred())
		var extension operatorv1alpha1.Extension
		Expect(yaml.UnmarshalStrict(text, &extension)).To(Succeed())
		Expect(extension.Spec.Resources).To(Equal(registration.Spec.Resources), "gardener-operator registers the same")
		Expect(extension.Spec.Deployment.AdmissionDeployment.RuntimeCluster).NotTo(BeNil())
		Expect(extension.Spec.Deployment.AdmissionDeployment.VirtualCluster).NotTo(BeNil())
		Expect(extension.Spec.Deployment.ExtensionDeployment.Helm).NotTo(BeNil())
	})
})
