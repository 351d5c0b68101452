// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	manifests "github.com/evenkeel/evenkeel/kubernetes"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// serveBuffers has the Shoot serve CapacityBuffers, as one does that had the extension once.
func serveBuffers(ctx context.Context) {
	GinkgoHelper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(yaml.Unmarshal(manifests.CapacityBuffers, crd)).To(Succeed())
	Expect(createOrReplace(ctx, target, crd)).To(Succeed())
}

// annotate writes annotations of the Shoot's only pool, as its owner does.
func (s *shoot) annotate(ctx context.Context, annotations map[string]string) {
	GinkgoHelper()
	s.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) { w.Pools[0].Annotations = annotations })
	Expect(s.reconciled(ctx)).To(Succeed())
}

// condition is the message of a condition of the first MachineDeployment.
func (s *shoot) condition(ctx context.Context, kind string) string {
	GinkgoHelper()
	for _, c := range s.deployments(ctx)[0].Status.Conditions {
		if c.Type == machinev1alpha1.MachineDeploymentConditionType(kind) {
			return c.Message
		}
	}
	return ""
}

// logged counts the lines of the manager's log that contain all of some texts.
func (s *shoot) logged(texts ...string) (n int) {
	GinkgoHelper()
	for line := range bytes.Lines(must(os.ReadFile(s.kubelet.running()[0].process.Log()))) {
		here := true
		for _, text := range texts {
			here = here && bytes.Contains(line, []byte(text))
		}
		if here {
			n++
		}
	}
	return n
}

// hasEvenkeelByVector plays a Shoot whose Evenkeel comes from the image vector, in a seed that serves Reserves for others.
func hasEvenkeelByVector(ctx context.Context) {
	GinkgoHelper()
	installExtension(ctx)
	serveBuffers(ctx)
	s := newShoot(ctx, "vector", evenkeel, newPool("pool", 2, 6, "a"))
	s.annotate(ctx, map[string]string{machine.BoundsAnnotation: "2:6:1"})
	s.settles(ctx, 3)
	Expect(s.reserve(ctx)).To(Equal(1))
	Eventually(s.condition).WithArguments(ctx, "RightsGranted").Should(ContainSubstring("resources: [reserves]"))

	noise := s.listen(ctx)
	Expect(noise.asksInVain()).To(Succeed())
	Expect(noise.errors).To(BeZero(), noise.String())
	Expect(s.logged("A right is missing", "reserves")).To(Equal(1))
	Expect(s.logged("A right is missing", "capacitybuffers")).To(BeZero(), "without the right to read Reserves, they are of no interest")
	Expect(s.reserve(ctx)).To(Equal(1))
}
