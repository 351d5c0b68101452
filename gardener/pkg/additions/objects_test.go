// SPDX-License-Identifier: Apache-2.0

package additions

import (
	"context"
	"fmt"
	"testing"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component/nodemanagement/machinecontrollermanager"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	fakesecrets "github.com/gardener/gardener/pkg/utils/secrets/manager/fake"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
)

func TestAdditions(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Additions")
}

const namespace = "shoot--project--shop"

// newSeed has what gardenlet writes for a Shoot.
func newSeed(ctx context.Context) client.Client {
	GinkgoHelper()
	c := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "generic-token-kubeconfig"}},
	).Build()
	Expect(machinecontrollermanager.New(c, namespace, fakesecrets.New(c, namespace), machinecontrollermanager.Values{Image: "stock", Replicas: 1}).Deploy(ctx)).To(Succeed())
	return c
}

// all counts the objects of the kinds in question, by their resourceVersions.
func all(ctx context.Context, c client.Client) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, list := range []client.ObjectList{
		&corev1.SecretList{}, &corev1.ConfigMapList{}, &resourcesv1alpha1.ManagedResourceList{}, &monitoringv1.ServiceMonitorList{}, &monitoringv1.PrometheusRuleList{},
	} {
		Expect(c.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			found[fmt.Sprintf("%T %s", object, object.GetName())] = object.GetResourceVersion()
			return nil
		})).To(Succeed())
	}
	return found
}

var _ = Describe("Additions", func() {
	It("come beside what gardenlet writes, once, and go without a trace", func(ctx context.Context) {
		c := newSeed(ctx)
		before := all(ctx, c)
		Expect(Ensure(ctx, c, namespace)).To(Succeed())
		once := all(ctx, c)
		Expect(len(once)).To(Equal(len(before) + 5))
		for name, version := range before {
			Expect(once).To(HaveKeyWithValue(name, version), "law 1")
		}
		Expect(Ensure(ctx, c, namespace)).To(Succeed())
		Expect(all(ctx, c)).To(Equal(once), "law 2")
		Expect(Remove(ctx, c, namespace)).To(Succeed())
		Expect(all(ctx, c)).To(Equal(before))
		Expect(Remove(ctx, c, namespace)).To(Succeed(), "again")
	})

	It("are corrected, and keep the labels of others", func(ctx context.Context) {
		c := newSeed(ctx)
		Expect(Ensure(ctx, c, namespace)).To(Succeed())
		monitor := &monitoringv1.ServiceMonitor{}
		key := client.ObjectKey{Namespace: namespace, Name: MonitoringName}
		Expect(c.Get(ctx, key, monitor)).To(Succeed())
		wanted := monitor.Spec
		monitor.Labels = map[string]string{"theirs": "x"}
		monitor.Spec.Endpoints = nil
		Expect(c.Update(ctx, monitor)).To(Succeed())
		Expect(Ensure(ctx, c, namespace)).To(Succeed())
		Expect(c.Get(ctx, key, monitor)).To(Succeed())
		Expect(monitor.Spec).To(Equal(wanted))
		Expect(monitor.Labels).To(Equal(map[string]string{"theirs": "x", "prometheus": "shoot"}))
	})

	It("grant the manager's account in the Shoot what gardenlet does not", func(ctx context.Context) {
		c := newSeed(ctx)
		Expect(Ensure(ctx, c, namespace)).To(Succeed())
		objects, err := managedresources.GetObjects(ctx, c, namespace, Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(objects).To(HaveLen(2))
		theirs, err := managedresources.GetObjects(ctx, c, namespace, "shoot-core-machine-controller-manager")
		Expect(err).NotTo(HaveOccurred())
		ours, subject := grants(objects)
		granted, account := grants(theirs)
		Expect(subject).To(Equal(account))
		Expect(ours).To(ConsistOf("list storageclasses", "watch storageclasses", "list csidrivers", "watch csidrivers", "patch pods/status"), "law 3")
		for _, right := range ours {
			Expect(granted).NotTo(ContainElement(right))
		}
	})

	It("leave the rights in the Shoot to the next seed", func(ctx context.Context) {
		c := newSeed(ctx)
		Expect(Keep(ctx, c, namespace)).To(Succeed(), "there is nothing yet")
		Expect(Ensure(ctx, c, namespace)).To(Succeed())
		Expect(Keep(ctx, c, namespace)).To(Succeed())
		resource := &resourcesv1alpha1.ManagedResource{}
		Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Name}, resource)).To(Succeed())
		Expect(resource.Spec.KeepObjects).To(HaveValue(BeTrue()))
	})

	It("scrape the Service that gardenlet's ServiceMonitor scrapes, as another job", func(ctx context.Context) {
		c := newSeed(ctx)
		Expect(Ensure(ctx, c, namespace)).To(Succeed())
		var list monitoringv1.ServiceMonitorList
		Expect(c.List(ctx, &list, client.MatchingLabels{"prometheus": "shoot"})).To(Succeed())
		Expect(list.Items).To(HaveLen(2))
		Expect(list.Items[0].Spec.Selector).To(Equal(list.Items[1].Spec.Selector))
		Expect(list.Items[0].Spec.Endpoints[0].Port).To(Equal(list.Items[1].Spec.Endpoints[0].Port))
	})
})

// grants are the rights of ClusterRoles, and who has them.
func grants(objects []client.Object) (rights []string, subject rbacv1.Subject) {
	for _, object := range objects {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			for _, rule := range o.Rules {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						rights = append(rights, verb+" "+resource)
					}
				}
			}
		case *rbacv1.ClusterRoleBinding:
			subject = o.Subjects[0]
		}
	}
	return rights, subject
}
