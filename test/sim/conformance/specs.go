// SPDX-License-Identifier: Apache-2.0

// Package conformance contains what Evenkeel relies on in an API server, as specs for the simulated
// server and a real one.
//
// The server needs the CRDs and policies of kubernetes/. The specs work in the namespace "default",
// and remove their objects. No controller may change Machines, Nodes or unscheduled pods meanwhile.
package conformance

import (
	"context"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/fixture"
)

// Specs registers the specs. The function is called before each of them.
func Specs(config func() *rest.Config) {
	c := &cluster{}
	ginkgo.BeforeEach(func() {
		*c = *connect(config())
	})
	ginkgo.Describe("Versions", c.versions)
	ginkgo.Describe("Names", c.names)
	ginkgo.Describe("Generation", c.generation)
	ginkgo.Describe("Status", c.status)
	ginkgo.Describe("Deletion", c.deletion)
	ginkgo.Describe("Patches", c.patches)
	ginkgo.Describe("Applies", c.applies)
	ginkgo.Describe("Admission", c.admission)
	ginkgo.Describe("Selection", c.selection)
	ginkgo.Describe("Watches", c.watches)
	ginkgo.Describe("Subresources", c.subresources)
	ginkgo.Describe("Evictions", c.evictions)
	ginkgo.Describe("Pages", c.pages)
	ginkgo.Describe("Discovery", c.discovery)
}

func connect(config *rest.Config) *cluster {
	return &cluster{
		config: config, core: kubernetes.NewForConfigOrDie(config), machines: machineclient.NewForConfigOrDie(config), any: dynamic.NewForConfigOrDie(config),
	}
}

// cluster is the server under test.
type cluster struct {
	config   *rest.Config
	core     kubernetes.Interface
	machines machineclient.Interface
	any      dynamic.Interface
}

var (
	machines       = machinev1alpha1.SchemeGroupVersion.WithResource("machines")
	deployments    = machinev1alpha1.SchemeGroupVersion.WithResource("machinedeployments")
	machineclasses = machinev1alpha1.SchemeGroupVersion.WithResource("machineclasses")
	configMaps     = corev1.SchemeGroupVersion.WithResource("configmaps")
	nodes          = corev1.SchemeGroupVersion.WithResource("nodes")
	pods           = corev1.SchemeGroupVersion.WithResource("pods")
)

var (
	ctx    = context.Background()
	create = metav1.CreateOptions{}
	update = metav1.UpdateOptions{}
	patch  = metav1.PatchOptions{}
	get    = metav1.GetOptions{}
)

// patience is how long a spec waits for an event of a watch, in real time.
const patience = 10 * time.Second

// of returns the client for a kind, in the namespace if the kind has one.
func (c *cluster) of(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	if gvr == nodes {
		return c.any.Resource(gvr)
	}
	return c.any.Resource(gvr).Namespace(fixture.Namespace)
}

// createGenerated creates an object under a generated name, and removes it after the spec.
func (c *cluster) createGenerated(gvr schema.GroupVersionResource, object runtime.Object) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	u := &unstructured.Unstructured{Object: content}
	if u.GetName() != "" {
		u.SetGenerateName(u.GetName() + "-")
		u.SetName("")
	}
	stored, err := c.of(gvr).Create(ctx, u, create)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(c.remove, gvr, stored.GetName())
	return stored
}

// remove deletes an object even if finalizers keep it.
func (c *cluster) remove(gvr schema.GroupVersionResource, name string) {
	_, err := c.of(gvr).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), patch)
	if err == nil {
		err = c.of(gvr).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	}
	gomega.Expect(err).To(gomega.Or(gomega.Succeed(), gomega.Satisfy(apierrors.IsNotFound)))
}

func (c *cluster) configMap() *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	return c.createGenerated(configMaps, &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "conformance"}, Data: map[string]string{"a": "1"},
	})
}

func (c *cluster) machine() *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	return c.createGenerated(machines, fixture.Machine("conformance"))
}

// pod creates the service account, because an API server alone does not.
func (c *cluster) pod() *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := c.core.CoreV1().ServiceAccounts(fixture.Namespace).Create(ctx, account, create)
	gomega.Expect(err).To(gomega.Or(gomega.Succeed(), gomega.Satisfy(apierrors.IsAlreadyExists)))
	return c.createGenerated(pods, fixture.Pod("conformance", func(p *corev1.Pod) {
		no := false
		p.Spec.AutomountServiceAccountToken = &no
		p.Spec.SchedulerName = "nobody"
	}))
}

// set changes a field of a copy of an object.
func set(u *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	u = u.DeepCopy()
	gomega.Expect(unstructured.SetNestedField(u.Object, value, path...)).To(gomega.Succeed())
	return u
}

// field returns a field of an object, nil if there is none.
func field(u *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return value
}
