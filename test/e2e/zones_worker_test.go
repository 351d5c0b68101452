// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// gardener is a Worker as a Gardener writes it.
type gardener struct{}

var workerKind = schema.GroupVersionResource{Group: "extensions.gardener.cloud", Version: "v1alpha1", Resource: "workers"}

// newWorker has the API server serve Workers, and makes one.
func newWorker(ctx context.Context) gardener {
	GinkgoHelper()
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definitions := apis.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for kind, scope := range map[string]string{"Worker": "Namespaced", "Cluster": "Cluster"} {
		plural := strings.ToLower(kind) + "s"
		_, err := definitions.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": plural + ".extensions.gardener.cloud"},
			"spec": map[string]any{
				"group": "extensions.gardener.cloud", "scope": scope,
				"names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind)},
				"versions": []any{map[string]any{
					"name": "v1alpha1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
					"schema": map[string]any{"openAPIV3Schema": open},
				}},
			},
		}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(definitions.Delete(ctx, plural+".extensions.gardener.cloud", metav1.DeleteOptions{})).To(Succeed())
		})
	}
	Eventually(func() error {
		_, err := apis.Resource(workerKind.GroupVersion().WithResource("clusters")).List(ctx, metav1.ListOptions{})
		return err
	}).Should(Succeed(), "both kinds are served when the controllers look for them")
	Eventually(func() error {
		_, err := apis.Resource(workerKind).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker", "metadata": map[string]any{"name": "worker"},
			"spec": map[string]any{"type": "local", "region": "local", "pools": []any{map[string]any{
				"name": "worker", "minimum": int64(3), "maximum": int64(9), "annotations": map[string]any{machine.PoolExcessAnnotation: "4"}}}},
		}}, metav1.CreateOptions{})
		return err
	}).Should(Succeed())
	return gardener{}
}

// says writes the Worker's status, as its extension does.
func (gardener) says(ctx context.Context, z zones, bounds ...string) {
	GinkgoHelper()
	workers := apis.Resource(workerKind).Namespace(namespace)
	live, err := workers.Get(ctx, "worker", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	var all []any
	for i, text := range bounds {
		b, err := machine.ParseBounds(text)
		Expect(err).NotTo(HaveOccurred())
		all = append(all, map[string]any{"name": z[i].name, "minimum": int64(b.Min), "maximum": int64(b.Max)})
	}
	live.Object["status"] = map[string]any{"machineDeployments": all}
	_, err = workers.UpdateStatus(ctx, live, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}
