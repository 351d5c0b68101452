// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/test/fixture"
)

func (c *cluster) patches() {
	c.patchTypes()
	c.patchedObjects()
}

// patchTypes specifies merge, JSON and strategic merge patches.
func (c *cluster) patchTypes() {
	It("merge: maps are merged, null removes, lists are replaced", func() {
		m := fixture.Machine("conformance")
		m.Labels = map[string]string{"a": "1", "b": "2"}
		m.Finalizers = []string{"evenkeel.dev/one", "evenkeel.dev/two"}
		u := c.createGenerated(machines, m)
		body := []byte(`{"metadata":{"labels":{"a":null,"c":"3"},"finalizers":["evenkeel.dev/three"]}}`)
		u, err := c.of(machines).Patch(ctx, u.GetName(), types.MergePatchType, body, patch)
		Expect(err).NotTo(HaveOccurred())
		Expect(u.GetLabels()).To(Equal(map[string]string{"b": "2", "c": "3"}))
		Expect(u.GetFinalizers()).To(Equal([]string{"evenkeel.dev/three"}))
	})

	It("in steps: all or none", func() {
		u := c.configMap()
		body := []byte(`[{"op":"add","path":"/data/b","value":"2"},{"op":"test","path":"/data/a","value":"other"}]`)
		_, err := c.of(configMaps).Patch(ctx, u.GetName(), types.JSONPatchType, body, patch)
		Expect(err).To(Satisfy(apierrors.IsInvalid))
		body = []byte(`[{"op":"test","path":"/data/a","value":"1"},{"op":"replace","path":"/data/a","value":"2"}]`)
		u, err = c.of(configMaps).Patch(ctx, u.GetName(), types.JSONPatchType, body, patch)
		Expect(err).NotTo(HaveOccurred())
		Expect(field(u, "data")).To(Equal(map[string]any{"a": "2"}))
	})

	It("in steps: a test without a value passes where there is nothing, and one with a value does not", func() {
		for _, u := range []*unstructured.Unstructured{c.configMap(), c.machine()} {
			gvr := configMaps
			if u.GetKind() == "Machine" {
				gvr = machines
			}
			for path, passes := range map[string]bool{"/metadata/absent": true, "/metadata/name": false} {
				_, err := c.of(gvr).Patch(ctx, u.GetName(), types.JSONPatchType, []byte(`[{"op":"test","path":"`+path+`"}]`), patch)
				Expect(err == nil).To(Equal(passes), "%s: %v", path, err)
			}
			_, err := c.of(gvr).Patch(ctx, u.GetName(), types.JSONPatchType, []byte(`[{"op":"test","path":"/metadata/absent","value":0}]`), patch)
			Expect(err).To(Satisfy(apierrors.IsInvalid))
		}
	})

	It("strategic: lists of built-in kinds are merged by their key", func() {
		u := c.createGenerated(nodes, fixture.Node("conformance"))
		body := []byte(`{"status":{"conditions":[{"type":"Terminating","status":"True"}]}}`)
		_, err := c.of(nodes).Patch(ctx, u.GetName(), types.StrategicMergePatchType, body, patch, "status")
		Expect(err).NotTo(HaveOccurred())
		node, err := c.core.CoreV1().Nodes().Get(ctx, u.GetName(), get)
		Expect(err).NotTo(HaveOccurred())
		types := map[corev1.NodeConditionType]corev1.ConditionStatus{}
		for _, condition := range node.Status.Conditions {
			types[condition.Type] = condition.Status
		}
		Expect(types).To(HaveKeyWithValue(corev1.NodeReady, corev1.ConditionTrue))
		Expect(types).To(HaveKeyWithValue(corev1.NodeConditionType("Terminating"), corev1.ConditionTrue))
	})

	It("strategic: are not known for custom resources", func() {
		u := c.machine()
		_, err := c.of(machines).Patch(ctx, u.GetName(), types.StrategicMergePatchType, []byte(`{}`), patch)
		Expect(err).To(Satisfy(apierrors.IsUnsupportedMediaType))
	})
}

// patchedObjects specifies which results of a patch are valid.
func (c *cluster) patchedObjects() {
	It("of garbage are refused", func() {
		u := c.configMap()
		for _, kind := range []types.PatchType{types.MergePatchType, types.JSONPatchType} {
			_, err := c.of(configMaps).Patch(ctx, u.GetName(), kind, []byte(`{"data":`), patch)
			Expect(err).To(Satisfy(apierrors.IsBadRequest), string(kind))
		}
		_, err := c.of(configMaps).Patch(ctx, u.GetName(), types.MergePatchType, []byte(`{"data":{"a":1}}`), patch)
		Expect(err).To(Or(Satisfy(apierrors.IsBadRequest), Satisfy(apierrors.IsInvalid)))
	})

	It("give an object one controller at most", func() {
		u := c.machine()
		owner := func(name, uid string) string {
			return `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineSet","name":"` + name + `","uid":"` + uid + `","controller":true}`
		}
		body := []byte(`{"metadata":{"ownerReferences":[` + owner("one", "1") + `,` + owner("two", "2") + `],"uid":"` + string(u.GetUID()) + `"}}`)
		_, err := c.of(machines).Patch(ctx, u.GetName(), types.MergePatchType, body, patch)
		Expect(err).To(Satisfy(apierrors.IsInvalid))
		body = []byte(`{"metadata":{"ownerReferences":[` + owner("one", "1") + `],"uid":"` + string(u.GetUID()) + `"}}`)
		u, err = c.of(machines).Patch(ctx, u.GetName(), types.MergePatchType, body, patch)
		Expect(err).NotTo(HaveOccurred())
		Expect(u.GetOwnerReferences()).To(HaveLen(1))
	})

	It("keep numbers as they are", func() {
		u := c.createGenerated(deployments, fixture.MachineDeployment("conformance", 2147483647))
		u, err := c.of(deployments).Patch(ctx, u.GetName(), types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`), patch)
		Expect(err).NotTo(HaveOccurred())
		Expect(field(u, "spec", "replicas")).To(Equal(int64(2147483647)))
		Expect(u.GetGeneration()).To(BeEquivalentTo(1))
	})
}
