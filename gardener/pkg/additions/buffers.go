// SPDX-License-Identifier: Apache-2.0

package additions

import (
	"fmt"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	manifests "github.com/evenkeel/evenkeel/kubernetes"
)

// Names of what serves Reserves and CapacityBuffers. The chart limits the rights of the extension
// to them.
const (
	// ReservesName is the name of the RoleBinding that lets the manager serve Reserves.
	ReservesName = "extension-evenkeel-reserves"
	// BuffersName is the name of the RoleBinding that lets it create Reserves for CapacityBuffers,
	// and of the ManagedResource with their CRD.
	BuffersName = "extension-evenkeel-capacitybuffers"
	// BuffersSecretName is the name of the Secret with the CRD.
	BuffersSecretName = managedresources.SecretPrefix + BuffersName
	// The chart has these ClusterRoles.
	reservesRole = "extensions.gardener.cloud:evenkeel:reserves"
	buffersRole  = "extensions.gardener.cloud:evenkeel:capacitybuffers"
)

// buffersRules are the rights of the manager in a Shoot with CapacityBuffers. The rights that
// gardenlet grants let it read workloads and Nodes.
var buffersRules = []rbacv1.PolicyRule{
	{APIGroups: []string{"autoscaling.x-k8s.io"}, Resources: []string{"capacitybuffers"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{"autoscaling.x-k8s.io"}, Resources: []string{"capacitybuffers/status"}, Verbs: []string{"update"}},
	{APIGroups: []string{""}, Resources: []string{"podtemplates", "resourcequotas"}, Verbs: []string{"list", "watch"}},
}

// forBuffers returns the objects that a Shoot has only for CapacityBuffers. The right to create
// Reserves is the last one.
func forBuffers(namespace string) ([]client.Object, error) {
	crd, err := buffersKind()
	if err != nil {
		return nil, err
	}
	return []client.Object{
		&corev1.Secret{ObjectMeta: named(namespace, BuffersSecretName, nil), Type: corev1.SecretTypeOpaque, Data: crd},
		managed(namespace, BuffersName, true),
		binding(namespace, BuffersName, buffersRole),
	}, nil
}

// buffersKind returns the CRD. gardener-resource-manager creates it, and does not change one that
// exists.
func buffersKind() (map[string][]byte, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(manifests.CapacityBuffers, crd); err != nil {
		return nil, fmt.Errorf("read CRD of capacity buffers: %w", err)
	}
	metav1.SetMetaDataAnnotation(&crd.ObjectMeta, resourcesv1alpha1.Ignore, "true")
	metav1.SetMetaDataLabel(&crd.ObjectMeta, v1beta1constants.ShootNoCleanup, "true") // labels are not injected into what is ignored
	registry := managedresources.NewRegistry(kubernetes.ShootScheme, kubernetes.ShootCodec, kubernetes.ShootSerializer)
	data, err := registry.AddAllAndSerialize(crd)
	if err != nil {
		return nil, fmt.Errorf("encode CRD of capacity buffers: %w", err)
	}
	return data, nil
}

// managed returns the ManagedResource of a Secret. If its objects are to be kept, they stay in the
// Shoot when it is deleted.
func managed(namespace, name string, keep bool) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{
		ObjectMeta: named(namespace, name, map[string]string{managedresources.LabelKeyOrigin: "extension-evenkeel"}),
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			SecretRefs: []corev1.LocalObjectReference{{Name: managedresources.SecretPrefix + name}}, KeepObjects: ptr.To(keep),
			InjectLabels: map[string]string{v1beta1constants.ShootNoCleanup: "true"},
		},
	}
}

// binding gives the manager a ClusterRole of the chart in the namespace of its Shoot.
func binding(namespace, name, role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: named(namespace, name, nil),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: manager}},
	}
}
