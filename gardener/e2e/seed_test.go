// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/component"
	"github.com/gardener/gardener/pkg/component/autoscaling/vpa"
	"github.com/gardener/gardener/pkg/component/crddeployer"
	"github.com/gardener/gardener/pkg/component/extensions/crds"
	"github.com/gardener/gardener/pkg/component/gardener/resourcemanager"
	"github.com/gardener/gardener/pkg/component/nodemanagement/machinecontrollermanager"
	"github.com/gardener/gardener/pkg/component/observability/monitoring/prometheusoperator"
	"github.com/gardener/gardener/pkg/utils/managedresources"
)

// deployCRDs brings to the seed what gardenlet brings to one, as far as machines need it.
func deployCRDs(ctx context.Context) {
	GinkgoHelper()
	for _, deployer := range []component.DeployWaiter{
		must(machinecontrollermanager.NewCRD(seed)),
		must(crds.NewCRD(seed, true, true)),
		must(crddeployer.New(seed, []string{resourcemanager.CRD}, false)),
		must(vpa.NewCRD(seed, nil)),
		must(prometheusoperator.NewCRDs(seed)),
	} {
		Expect(deployer.Deploy(ctx)).To(Succeed())
		Expect(deployer.Wait(ctx)).To(Succeed())
	}
}

// applyManagedResource plays gardener-resource-manager: it brings the objects of a ManagedResource to the Shoot.
func applyManagedResource(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	objects, err := managedresources.GetObjects(ctx, seed, namespace, name)
	Expect(err).NotTo(HaveOccurred())
	Expect(objects).NotTo(BeEmpty())
	for _, object := range objects {
		Expect(createOrReplace(ctx, target, object)).To(Succeed())
	}
}

// shootAccount plays gardener-resource-manager's token requestor: it makes the account that an access Secret asks for, and
// returns a kubeconfig of it.
func shootAccount(ctx context.Context, namespace, secret string) string {
	GinkgoHelper()
	var access corev1.Secret
	Expect(seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secret}, &access)).To(Succeed())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: access.Annotations[resourcesv1alpha1.ServiceAccountNamespace], Name: access.Annotations[resourcesv1alpha1.ServiceAccountName],
	}}
	Expect(client.IgnoreAlreadyExists(target.Create(ctx, account))).To(Succeed())
	path, err := targetCluster.AccountKubeconfig(ctx, account.Namespace, account.Name)
	Expect(err).NotTo(HaveOccurred())
	return path
}

// createOrReplace writes an object whatever is there.
func createOrReplace(ctx context.Context, c client.Client, object client.Object) error {
	err := c.Create(ctx, object)
	if client.IgnoreAlreadyExists(err) != nil || err == nil {
		return err
	}
	there := object.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), there); err != nil {
		return err
	}
	object.SetResourceVersion(there.GetResourceVersion())
	return c.Update(ctx, object)
}

func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}
