// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/pkg/additions"
)

// enable is what gardenlet does for a Shoot with the extension, before it writes the control plane.
func (s *shoot) enable(ctx context.Context, config string) {
	GinkgoHelper()
	s.label(ctx, true)
	ex := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "evenkeel"}}
	Expect(client.IgnoreNotFound(seed.Get(ctx, client.ObjectKeyFromObject(ex), ex))).To(Succeed())
	ex.Spec = extensionSpec(config)
	if ex.ResourceVersion == "" {
		metav1.SetMetaDataAnnotation(&ex.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
		Expect(seed.Create(ctx, ex)).To(Succeed())
	} else {
		s.request(ctx, ex, v1beta1constants.GardenerOperationReconcile)
	}
	s.awaitExtension(ctx)
}

// requested is the description of the last operation until the one that was requested begins.
const requested = "requested"

// request asks for an operation on an Extension. The library takes the request away before it changes the status, which then still
// says that the operation before has succeeded. So this one is marked.
func (s *shoot) request(ctx context.Context, ex *extensionsv1alpha1.Extension, operation string) {
	GinkgoHelper()
	metav1.SetMetaDataAnnotation(&ex.ObjectMeta, v1beta1constants.GardenerOperation, operation)
	before := s.extension(ctx)
	if patch := client.MergeFrom(before.DeepCopy()); before.Status.LastOperation != nil {
		before.Status.LastOperation.Description = requested
		Expect(seed.Status().Patch(ctx, before, patch)).To(Succeed())
	}
	ex.ResourceVersion = before.ResourceVersion
	Expect(seed.Update(ctx, ex)).To(Succeed())
}

// awaitExtension is what gardenlet waits for before it goes on.
func (s *shoot) awaitExtension(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		ex := s.extension(ctx)
		g.Expect(ex.Annotations).NotTo(HaveKey(v1beta1constants.GardenerOperation))
		g.Expect(ex.Status.ObservedGeneration).To(Equal(ex.Generation))
		g.Expect(ex.Status.LastOperation).To(And(HaveField("State", gardencorev1beta1.LastOperationStateSucceeded), HaveField("Description", Not(Equal(requested)))))
	}).WithContext(ctx).Should(Succeed())
}

func extensionSpec(config string) extensionsv1alpha1.ExtensionSpec {
	return extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "evenkeel", ProviderConfig: &runtime.RawExtension{Raw: []byte(config)}}}
}

func (s *shoot) label(ctx context.Context, enabled bool) {
	GinkgoHelper()
	namespace := &corev1.Namespace{}
	Expect(seed.Get(ctx, client.ObjectKey{Name: s.namespace}, namespace)).To(Succeed())
	patch := client.MergeFrom(namespace.DeepCopy())
	if delete(namespace.Labels, extensionLabel); enabled {
		namespace.Labels[extensionLabel] = "true"
	}
	Expect(seed.Patch(ctx, namespace, patch)).To(Succeed())
}

func (s *shoot) extension(ctx context.Context) *extensionsv1alpha1.Extension {
	GinkgoHelper()
	ex := &extensionsv1alpha1.Extension{}
	Expect(seed.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "evenkeel"}, ex)).To(Succeed())
	return ex
}

// gardenletReconciles is what gardenlet does after the Extensions: the Deployment, the Worker, and the wait for it.
func (s *shoot) gardenletReconciles(ctx context.Context) {
	GinkgoHelper()
	s.gardenletWrites(ctx)
	Expect(s.reconciled(ctx)).To(Succeed())
}

// gardenletWrites is what it writes of that: it knows no annotation of Evenkeel.
func (s *shoot) gardenletWrites(ctx context.Context) {
	GinkgoHelper()
	s.deploy(ctx, 1)
	s.writeWorker(ctx)
}

func (s *shoot) writeWorker(ctx context.Context) {
	GinkgoHelper()
	s.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) {
		for i := range w.Pools {
			w.Pools[i].Annotations = nil
		}
	})
}

// withWorkers has the Shoot name its workers, as the extension reads them.
func (s *shoot) withWorkers(ctx context.Context) {
	GinkgoHelper()
	s.cluster.Shoot.Spec.Provider.Workers = nil
	for _, pool := range s.worker.Spec.Pools {
		s.cluster.Shoot.Spec.Provider.Workers = append(s.cluster.Shoot.Spec.Provider.Workers, gardencorev1beta1.Worker{Name: pool.Name, Minimum: pool.Minimum, Maximum: pool.Maximum})
	}
	s.saveCluster(ctx)
}

// disable is what gardenlet does when the owner has removed the extension: the namespace loses its label, and the Extension goes while
// gardenlet writes the Deployment.
func (s *shoot) disable(ctx context.Context, replicas int32) {
	GinkgoHelper()
	s.label(ctx, false)
	ex := s.extension(ctx)
	Expect(seed.Delete(ctx, ex)).To(Succeed())
	s.deploy(ctx, replicas)
	Eventually(func() error { return seed.Get(ctx, client.ObjectKeyFromObject(ex), ex) }).WithContext(ctx).Should(MatchError(ContainSubstring("not found")))
}

func (s *shoot) manager(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	Expect(seed.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "machine-controller-manager"}, d)).To(Succeed())
	return d
}

func imageOf(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image }

// reserve counts the machines in reserve.
func (s *shoot) reserve(ctx context.Context) (n int) {
	GinkgoHelper()
	for _, m := range s.machines(ctx) {
		if m.Annotations[machine.ReserveAnnotation] != "" {
			n++
		}
	}
	return n
}

// additions are the objects with a content that the extension looks after, empty.
func (s *shoot) additions() []client.Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: s.namespace, Name: name} }
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: named(additions.DashboardName)},
		&corev1.Secret{ObjectMeta: named(additions.SecretName)},
		&resourcesv1alpha1.ManagedResource{ObjectMeta: named(additions.Name)},
		&monitoringv1.ServiceMonitor{ObjectMeta: named(additions.MonitoringName)},
		&monitoringv1.PrometheusRule{ObjectMeta: named(additions.MonitoringName)},
		&rbacv1.RoleBinding{ObjectMeta: named(additions.ReservesName)},
	}
}

// added is the content of what the extension has added.
func (s *shoot) added(ctx context.Context) []string {
	GinkgoHelper()
	var all []string
	for _, object := range s.additions() {
		Expect(seed.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		object.SetResourceVersion("")
		object.SetManagedFields(nil)
		object.SetGeneration(0)
		object.SetUID("")
		object.SetCreationTimestamp(metav1.Time{})
		all = append(all, string(must(json.Marshal(object))))
	}
	return all
}

// spoilAdded changes the content of everything that the extension has added.
func (s *shoot) spoilAdded(ctx context.Context) {
	GinkgoHelper()
	changes := []string{
		`{"data":{"evenkeel.json":"{}"}}`, `{"data":null}`, `{"spec":{"keepObjects":true}}`,
		`{"spec":{"endpoints":[{"port":"other"}]}}`, `{"spec":{"groups":[]}}`, `{"subjects":null}`,
	}
	for i, object := range s.additions() {
		Expect(seed.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(changes[i])))).To(Succeed())
	}
}

// scraped are the series that the Shoot's Prometheus keeps for the added ServiceMonitor.
func (s *shoot) scraped(ctx context.Context) []string {
	GinkgoHelper()
	var monitor monitoringv1.ServiceMonitor
	Expect(seed.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: additions.MonitoringName}, &monitor)).To(Succeed())
	var service corev1.Service
	Expect(seed.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "machine-controller-manager"}, &service)).To(Succeed())
	for key, value := range monitor.Spec.Selector.MatchLabels {
		Expect(service.Labels).To(HaveKeyWithValue(key, value))
	}
	endpoint := monitor.Spec.Endpoints[0]
	Expect(service.Spec.Ports).To(ContainElement(HaveField("Name", endpoint.Port)))
	kept := regexp.MustCompile(endpoint.MetricRelabelConfigs[0].Regex)
	return slices.DeleteFunc(s.kubelet.running()[0].series(ctx), func(name string) bool { return !kept.MatchString(name) })
}

// newReservedShoot has two machines for workload, and two in reserve by the extension.
func newReservedShoot(ctx context.Context, name string) *shoot {
	GinkgoHelper()
	s := newShoot(ctx, name, stock, newPool("pool", 2, 6, "a"))
	Expect(s.reconciled(ctx)).To(Succeed())
	s.withWorkers(ctx)
	s.enable(ctx, reserveOfTwo)
	s.gardenletReconciles(ctx)
	s.settles(ctx, 4)
	Expect(s.reserve(ctx)).To(Equal(2))
	Expect(s.scraped(ctx)).To(ContainElements("evenkeel_reserve_machines", "evenkeel_reserve_ready", "evenkeel_reserve_restorations_total"))
	return s
}

var reserveOfTwo = config(`[{"name":"pool","excess":2}]`)

func config(pools string) string {
	return `{"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig","pools":` + pools + `}`
}
