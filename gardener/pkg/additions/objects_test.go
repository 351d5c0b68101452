// SPDX-License-Identifier: Apache-2.0

package additions

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
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
		&rbacv1.RoleBindingList{},
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
		Expect(Ensure(ctx, c, namespace, false)).To(Succeed())
		once := all(ctx, c)
		Expect(len(once)).To(Equal(len(before) + 6))
		for name, version := range before {
			Expect(once).To(HaveKeyWithValue(name, version), "law 1")
		}
		Expect(Ensure(ctx, c, namespace, false)).To(Succeed())
		Expect(all(ctx, c)).To(Equal(once), "law 2")
		Expect(Remove(ctx, c, namespace)).To(Succeed())
		Expect(all(ctx, c)).To(Equal(before))
		Expect(Remove(ctx, c, namespace)).To(Succeed(), "again")
	})

	It("are more for CapacityBuffers, and leave no trace either", func(ctx context.Context) {
		c := newSeed(ctx)
		before := all(ctx, c)
		Expect(Ensure(ctx, c, namespace, false)).To(Succeed())
		without := all(ctx, c)
		Expect(Ensure(ctx, c, namespace, true)).To(Succeed())
		with := all(ctx, c)
		Expect(len(with)).To(Equal(len(without) + 3))
		Expect(Ensure(ctx, c, namespace, true)).To(Succeed())
		Expect(all(ctx, c)).To(Equal(with), "law 2")
		Expect(Ensure(ctx, c, namespace, false)).To(Succeed())
		Expect(slices.Collect(maps.Keys(all(ctx, c)))).To(ConsistOf(slices.Collect(maps.Keys(without))))
		Expect(Ensure(ctx, c, namespace, true)).To(Succeed())
		Expect(Remove(ctx, c, namespace)).To(Succeed())
		Expect(all(ctx, c)).To(Equal(before))
	})

	It("are restored where another client has changed them, and keep its labels", func(ctx context.Context) {
		c := newSeed(ctx)
		Expect(Ensure(ctx, c, namespace, true)).To(Succeed())
		objects, err := in(namespace, true)
		Expect(err).NotTo(HaveOccurred())
		optional, err := forBuffers(namespace)
		Expect(err).NotTo(HaveOccurred())
		objects = slices.Concat(objects, optional)
		for _, o := range objects {
			there := o.DeepCopyObject().(client.Object)
			Expect(c.Get(ctx, client.ObjectKeyFromObject(o), there)).To(Succeed())
			empty := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
			empty.SetNamespace(o.GetNamespace())
			empty.SetName(o.GetName())
			empty.SetResourceVersion(there.GetResourceVersion())
			empty.SetLabels(map[string]string{"theirs": "x"})
			if s, ok := empty.(*corev1.Secret); ok {
				s.Type = corev1.SecretTypeOpaque // which cannot be changed
			}
			Expect(c.Update(ctx, empty)).To(Succeed())
		}
		Expect(Ensure(ctx, c, namespace, true)).To(Succeed())
		for _, o := range objects {
			there := o.DeepCopyObject().(client.Object)
			Expect(c.Get(ctx, client.ObjectKeyFromObject(o), there)).To(Succeed())
			Expect(equality.Semantic.DeepDerivative(o, there)).To(BeTrue(), "%T %s", o, o.GetName())
			Expect(there.GetLabels()).To(HaveKeyWithValue("theirs", "x"))
		}
	})

	It("end with the right to create Reserves, and it is the first that goes", func(ctx context.Context) {
		var writes []string
		c := interceptor.NewClient(newSeed(ctx).(client.WithWatch), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				writes = append(writes, "create "+object.GetName())
				return c.Create(ctx, object, options...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				writes = append(writes, "delete "+object.GetName())
				return c.Delete(ctx, object, options...)
			},
		})
		Expect(Ensure(ctx, c, namespace, true)).To(Succeed())
		Expect(writes[0]).To(Equal("create " + ReservesName))
		Expect(writes[len(writes)-1]).To(Equal("create " + BuffersName))
		writes = nil
		Expect(Remove(ctx, c, namespace)).To(Succeed())
		Expect(writes[0]).To(Equal("delete " + BuffersName))
		Expect(writes[len(writes)-1]).To(Equal("delete " + ReservesName))
		writes = nil
		Expect(Revoke(ctx, c, namespace)).To(Succeed())
		Expect(writes).To(Equal([]string{"delete " + BuffersName}))
	})

	DescribeTable("bind the roles of the chart to the manager's account in the seed", func(ctx context.Context, buffers bool, roles ...string) {
		c := newSeed(ctx)
		Expect(Ensure(ctx, c, namespace, buffers)).To(Succeed())
		theirs := &rbacv1.RoleBinding{}
		Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: manager}, theirs)).To(Succeed())
		var list rbacv1.RoleBindingList
		Expect(c.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
		var bound []string
		for _, b := range list.Items {
			Expect(b.Subjects).To(Equal(theirs.Subjects))
			if b.Name != theirs.Name {
				Expect(b.RoleRef.Kind).To(Equal("ClusterRole"))
				bound = append(bound, b.RoleRef.Name)
			}
		}
		Expect(bound).To(ConsistOf(roles))
	},
		Entry("with CapacityBuffers", true, "extensions.gardener.cloud:evenkeel:reserves", "extensions.gardener.cloud:evenkeel:capacitybuffers"),
		Entry("without", false, "extensions.gardener.cloud:evenkeel:reserves"),
	)

	It("bring the CRD of CapacityBuffers if there is none, and keep it and any other", func(ctx context.Context) {
		c := newSeed(ctx)
		Expect(Ensure(ctx, c, namespace, true)).To(Succeed())
		resource := &resourcesv1alpha1.ManagedResource{}
		Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: BuffersName}, resource)).To(Succeed())
		Expect(resource.Spec.KeepObjects).To(HaveValue(BeTrue()), "law 4: it stays when the ManagedResource goes")
		objects, err := managedresources.GetObjects(ctx, c, namespace, BuffersName)
		Expect(err).NotTo(HaveOccurred())
		Expect(objects).To(HaveLen(1))
		crd := objects[0].(*apiextensionsv1.CustomResourceDefinition)
		Expect(crd.Annotations).To(HaveKeyWithValue(resourcesv1alpha1.Ignore, "true"), "law 4: one that is there is not changed")
		Expect(crd.Labels).To(HaveKeyWithValue(v1beta1constants.ShootNoCleanup, "true"))
		text, err := os.ReadFile("../../../kubernetes/optional-crds/autoscaling.x-k8s.io_capacitybuffers.yaml")
		Expect(err).NotTo(HaveOccurred())
		var generated apiextensionsv1.CustomResourceDefinition
		Expect(yaml.UnmarshalStrict(text, &generated)).To(Succeed())
		Expect(crd.Name).To(Equal(generated.Name))
		Expect(crd.Spec).To(Equal(generated.Spec))
	})

	It("grant in a Shoot with CapacityBuffers what the controller's role has and gardenlet does not", func(ctx context.Context) {
		c := newSeed(ctx)
		Expect(Ensure(ctx, c, namespace, true)).To(Succeed())
		ours, _ := grantsOf(ctx, c, Name)
		theirs, _ := grantsOf(ctx, c, "shoot-core-machine-controller-manager")
		Expect(Ensure(ctx, c, namespace, false)).To(Succeed())
		without, _ := grantsOf(ctx, c, Name)
		added := slices.DeleteFunc(slices.Clone(ours), func(right string) bool { return slices.Contains(without, right) })
		needed := controllerRights()
		Expect(needed).NotTo(BeEmpty())
		Expect(added).To(ConsistOf(slices.DeleteFunc(needed, func(right string) bool { return slices.Contains(theirs, right) })), "law 3")
	})

	It("are corrected, and keep the labels of others", func(ctx context.Context) {
		c := newSeed(ctx)
		Expect(Ensure(ctx, c, namespace, false)).To(Succeed())
		monitor := &monitoringv1.ServiceMonitor{}
		key := client.ObjectKey{Namespace: namespace, Name: MonitoringName}
		Expect(c.Get(ctx, key, monitor)).To(Succeed())
		wanted := monitor.Spec
		monitor.Labels = map[string]string{"theirs": "x"}
		monitor.Spec.Endpoints = nil
		Expect(c.Update(ctx, monitor)).To(Succeed())
		Expect(Ensure(ctx, c, namespace, false)).To(Succeed())
		Expect(c.Get(ctx, key, monitor)).To(Succeed())
		Expect(monitor.Spec).To(Equal(wanted))
		Expect(monitor.Labels).To(Equal(map[string]string{"theirs": "x", "prometheus": "shoot"}))
	})

	It("grant the manager's account in the Shoot what gardenlet does not", func(ctx context.Context) {
		c := newSeed(ctx)
		Expect(Ensure(ctx, c, namespace, false)).To(Succeed())
		ours, subject := grantsOf(ctx, c, Name)
		granted, account := grantsOf(ctx, c, "shoot-core-machine-controller-manager")
		Expect(subject).To(Equal(account))
		Expect(ours).To(ConsistOf("list storageclasses", "watch storageclasses", "list csidrivers", "watch csidrivers", "patch pods/status",
			"list resourceslices", "watch resourceslices", "list deviceclasses", "watch deviceclasses", "list resourceclaims", "watch resourceclaims",
			"list resourceclaimtemplates", "watch resourceclaimtemplates", "list podgroups", "watch podgroups"), "law 3")
		for _, right := range ours {
			Expect(granted).NotTo(ContainElement(right))
		}
	})

	It("leave the rights in the Shoot to the next seed", func(ctx context.Context) {
		c := newSeed(ctx)
		Expect(Keep(ctx, c, namespace)).To(Succeed(), "there is nothing yet")
		Expect(Ensure(ctx, c, namespace, false)).To(Succeed())
		Expect(Keep(ctx, c, namespace)).To(Succeed())
		resource := &resourcesv1alpha1.ManagedResource{}
		Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Name}, resource)).To(Succeed())
		Expect(resource.Spec.KeepObjects).To(HaveValue(BeTrue()))
	})

	It("scrape the Service that gardenlet's ServiceMonitor scrapes, as another job", func(ctx context.Context) {
		c := newSeed(ctx)
		Expect(Ensure(ctx, c, namespace, false)).To(Succeed())
		var list monitoringv1.ServiceMonitorList
		Expect(c.List(ctx, &list, client.MatchingLabels{"prometheus": "shoot"})).To(Succeed())
		Expect(list.Items).To(HaveLen(2))
		Expect(list.Items[0].Spec.Selector).To(Equal(list.Items[1].Spec.Selector))
		Expect(list.Items[0].Spec.Endpoints[0].Port).To(Equal(list.Items[1].Spec.Endpoints[0].Port))
	})
})

// grantsOf are the rights that a ManagedResource brings to the Shoot.
func grantsOf(ctx context.Context, c client.Client, name string) ([]string, rbacv1.Subject) {
	GinkgoHelper()
	objects, err := managedresources.GetObjects(ctx, c, namespace, name)
	Expect(err).NotTo(HaveOccurred())
	return grants(objects)
}

// controllerRights are those that the controller of CapacityBuffers needs in the target cluster.
func controllerRights() []string {
	GinkgoHelper()
	text, err := os.ReadFile("../../../kubernetes/deploy/target/access.yaml")
	Expect(err).NotTo(HaveOccurred())
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		role := &rbacv1.ClusterRole{}
		Expect(yaml.Unmarshal([]byte(document), role)).To(Succeed())
		if role.Kind == "ClusterRole" && role.Name == "evenkeel-capacitybuffer-target" {
			rights, _ := grants([]client.Object{role})
			return rights
		}
	}
	return nil
}

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
