// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/controller/worker"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/provider-local/apis/local/install"
	localworker "github.com/gardener/gardener/pkg/provider-local/controller/worker"
)

const (
	userData, userDataKey = "user-data", "cloud_config"
	machineType, region   = "local", "local"
	// newerVersion of the machine image is the one after that of new pools.
	newerVersion = "1.1.0"
)

// newActuator is provider-local's, with changes of what it reads and writes.
func newActuator(changes interceptor.Funcs) worker.Actuator {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(kubernetes.AddSeedSchemeToScheme(scheme)).To(Succeed())
	Expect(install.AddToScheme(scheme)).To(Succeed())
	config := rest.CopyConfig(seedCluster.Config())
	config.UserAgent = "gardener-extension-provider-local" // the name of the program, which the API server keeps with what it writes
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			direct, err := client.NewWithWatch(config, client.Options{Scheme: options.Scheme})
			if err != nil {
				return nil, err
			}
			return interceptor.NewClient(direct, changes), nil
		},
	})
	Expect(err).NotTo(HaveOccurred())
	return localworker.NewActuator(mgr, nil)
}

// forVirtual makes MachineClasses fit for the virtual provider.
var forVirtual = interceptor.Funcs{Patch: patchVirtual}

// patchVirtual writes MachineClasses of provider-local as such of the virtual provider.
func patchVirtual(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if class, ok := object.(*machinev1alpha1.MachineClass); ok {
		text, err := json.Marshal(map[string]any{
			"zone": class.NodeTemplate.Zone, "region": region, "instanceType": machineType,
			"capacity":  map[string]string{"cpu": "4", "memory": "16Gi"},
			"bootDelay": map[string]string{"from": "500ms", "to": "1500ms"},
		})
		if err != nil {
			return err
		}
		class.Provider, class.ProviderSpec = "virtual", runtime.RawExtension{Raw: text}
	}
	return c.Patch(ctx, object, patch, options...)
}

// newPool is a pool of a Worker, as gardenlet would make it from a Shoot's.
func newPool(name string, minimum, maximum int32, zones ...string) extensionsv1alpha1.WorkerPool {
	return extensionsv1alpha1.WorkerPool{
		Name: name, Minimum: minimum, Maximum: maximum, MaxSurge: intstr.FromInt32(1), MaxUnavailable: intstr.FromInt32(0),
		Zones: zones, MachineType: machineType, MachineImage: extensionsv1alpha1.MachineImage{Name: "local", Version: "1.0.0"},
		NodeAgentSecretName: ptr.To("gardener-node-agent-" + name + "-1"), Architecture: ptr.To("amd64"),
		UserDataSecretRef: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: userData}, Key: userDataKey},
		NodeTemplate:      &extensionsv1alpha1.NodeTemplate{Capacity: corev1.ResourceList{"cpu": resource.MustParse("4"), "gpu": resource.MustParse("0"), "memory": resource.MustParse("16Gi")}},
		Annotations:       map[string]string{},
	}
}

func newWorker(namespace, name string, pools []extensionsv1alpha1.WorkerPool) *extensionsv1alpha1.Worker {
	return &extensionsv1alpha1.Worker{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: extensionsv1alpha1.WorkerSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, Region: region, Pools: pools,
			SecretRef: corev1.SecretReference{Namespace: namespace, Name: v1beta1constants.SecretNameCloudProvider},
		},
	}
}

// newCluster is what the extension reads of the Shoot and its CloudProfile.
func newCluster(namespace, name string) *extensionscontroller.Cluster {
	profile := fmt.Sprintf(`{"apiVersion":"local.provider.extensions.gardener.cloud/v1alpha1","kind":"CloudProfileConfig",
		"machineImages":[{"name":"local","versions":[{"version":"1.0.0","image":%[1]q},{"version":%[2]q,"image":%[1]q}]}]}`, machineType, newerVersion)
	return &extensionscontroller.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		CloudProfile: &gardencorev1beta1.CloudProfile{
			TypeMeta:   metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "CloudProfile"},
			ObjectMeta: metav1.ObjectMeta{Name: "local"},
			Spec: gardencorev1beta1.CloudProfileSpec{
				MachineTypes: []gardencorev1beta1.MachineType{{Name: machineType}}, ProviderConfig: &runtime.RawExtension{Raw: []byte(profile)},
			},
		},
		Seed: &gardencorev1beta1.Seed{TypeMeta: metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Seed"}},
		Shoot: &gardencorev1beta1.Shoot{
			TypeMeta:   metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-local", Name: name},
			Spec: gardencorev1beta1.ShootSpec{
				Hibernation: &gardencorev1beta1.Hibernation{Enabled: ptr.To(false)},
				Networking:  &gardencorev1beta1.Networking{IPFamilies: []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4}},
			},
			Status: gardencorev1beta1.ShootStatus{TechnicalID: namespace},
		},
	}
}

// saveCluster writes the Cluster resource that gardenlet keeps on the seed.
func (s *shoot) saveCluster(ctx context.Context) {
	GinkgoHelper()
	Expect(createOrReplace(ctx, seed, &extensionsv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec: extensionsv1alpha1.ClusterSpec{
			CloudProfile: runtime.RawExtension{Object: s.cluster.CloudProfile},
			Seed:         &runtime.RawExtension{Object: s.cluster.Seed},
			Shoot:        runtime.RawExtension{Object: s.cluster.Shoot},
		},
	})).To(Succeed())
}

// hibernation sets what the Shoot wants, and what it has reached.
func (s *shoot) hibernation(ctx context.Context, enabled, reached bool) {
	GinkgoHelper()
	s.cluster.Shoot.Spec.Hibernation.Enabled = ptr.To(enabled)
	s.cluster.Shoot.Status.IsHibernated = reached
	s.saveCluster(ctx)
}
