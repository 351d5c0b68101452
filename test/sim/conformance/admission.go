// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// bounded returns a MachineDeployment with bounds, for a dry run.
func (c *cluster) bounded(bounds string) error {
	d := fixture.MachineDeployment("", 1)
	d.GenerateName = "conformance-"
	d.Annotations = map[string]string{machine.BoundsAnnotation: bounds}
	_, err := c.machines.MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(ctx, d, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func (c *cluster) admission() {
	It("denies by the policies of this repository, with the reason", func() {
		// A real API server reads its policies a moment after they were created.
		Eventually(func() error { return c.bounded("5:1") }, patience, 100*time.Millisecond).Should(Satisfy(apierrors.IsInvalid))
		Expect(c.bounded("5:1")).To(MatchError(And(
			ContainSubstring("ValidatingAdmissionPolicy 'machinedeployment-annotations.evenkeel.machine.sapcloud.io'"), ContainSubstring("min must not be above max"))))
		Expect(c.bounded("1:5")).To(Succeed())
	})

	It("denies an update or an apply, which then changes nothing", func() {
		Eventually(func() error { return c.bounded("5:1") }, patience, 100*time.Millisecond).Should(HaveOccurred())
		u := c.createGenerated(deployments, fixture.MachineDeployment("conformance", 1))
		body := []byte(`{"metadata":{"annotations":{"` + machine.BoundsAnnotation + `":"5:1"}}}`)
		_, err := c.of(deployments).Patch(ctx, u.GetName(), types.MergePatchType, body, patch)
		Expect(err).To(Satisfy(apierrors.IsInvalid))
		wish := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
		wish.SetName(u.GetName())
		wish.SetAnnotations(map[string]string{machine.BoundsAnnotation: "5:1"})
		_, err = c.of(deployments).Apply(ctx, u.GetName(), wish, metav1.ApplyOptions{FieldManager: "one"})
		Expect(err).To(Satisfy(apierrors.IsInvalid))
		is, err := c.of(deployments).Get(ctx, u.GetName(), get)
		Expect(err).NotTo(HaveOccurred())
		Expect(is).To(Equal(u))
	})

	It("asks no policy about a subresource that it does not name", func() {
		u := c.createGenerated(deployments, fixture.MachineDeployment("conformance", 1))
		_, err := c.of(deployments).Patch(ctx, u.GetName(), types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), patch, "scale")
		Expect(err).NotTo(HaveOccurred())
	})

	It("denies by the schema of a definition", func() {
		u := c.createGenerated(deployments, fixture.MachineDeployment("conformance", 1))
		for _, body := range []string{`{"spec":{"replicas":"two"}}`, `{"spec":{"excessReplicas":-1}}`} {
			_, err := c.of(deployments).Patch(ctx, u.GetName(), types.MergePatchType, []byte(body), patch)
			Expect(err).To(Satisfy(apierrors.IsInvalid), body)
		}
		_, err := c.of(deployments).Patch(ctx, u.GetName(), types.MergePatchType, []byte(`{"spec":{"excessReplicas":1}}`), patch)
		Expect(err).NotTo(HaveOccurred())
	})
}
