// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component/nodemanagement/machinecontrollermanager"
	"github.com/gardener/gardener/pkg/provider-local/controller/infrastructure"
	"github.com/gardener/gardener/pkg/provider-local/local"

	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	// providerLocal is Gardener's program that creates machines as Pods, and where it is.
	providerLocal        = "machine-controller-manager-provider-local"
	providerLocalPackage = "github.com/gardener/gardener/cmd/machine-controller-manager-provider-local"
)

// The cluster whose Pods are machines, as kind is for Gardener's local setup, and an administrator's client without a cache.
var (
	infraCluster *localcluster.Cluster
	infra        client.Client
)

// localStories are told again, with machines of provider-local.
func localStories() []story {
	var told []story
	for _, name := range []string{
		"a reserve of two is added",
		"nodes are rolled beside a reserve of two",
		"a Shoot with a reserve hibernates and wakes up",
		"the image is swapped back beside a reserve of two",
	} {
		i := slices.IndexFunc(stories, func(s story) bool { return s.name == name })
		s := stories[i]
		s.name, s.local = name+", with provider-local", true
		told = append(told, s)
	}
	return told
}

// startInfra has a cluster of one Node, until the end of the spec.
func startInfra(ctx context.Context) {
	GinkgoHelper()
	compile(ctx, providerLocal, providerLocalPackage)
	infraCluster = startCluster(ctx, localcluster.Options{Name: "gardener-infra"})
	infra = newClient(infraCluster, kubernetes.SeedScheme)
	Expect(infra.Create(ctx, fakeNode("kind", "100"))).To(Succeed())
}

// fakeNode is one whose kubelet kwok plays.
func fakeNode(name, cpu string) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{virtual.KwokAnnotation: virtual.KwokFake},
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"},
		},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady"}},
		},
	}
}

// useProviderLocal has provider-local create the machines of a Shoot that was prepared.
func (s *shoot) useProviderLocal(ctx context.Context) {
	GinkgoHelper()
	namespace := infrastructure.NamespaceName(s.namespace)
	Expect(infra.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	config := must(clientcmd.LoadFromFile(infraCluster.Kubeconfig()))
	Expect(api.FlattenConfig(config)).To(Succeed())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: v1beta1constants.SecretNameCloudProvider}}
	secret.Data = map[string][]byte{kubernetes.KubeConfig: must(clientcmd.Write(*config))}
	Expect(createOrReplace(ctx, seed, secret)).To(Succeed())
	s.actuator, s.sidecar = newActuator(withoutPods), s.providerLocal
	s.runMachines(ctx, namespace)
}

// withoutPods hides from an actuator where the Pods are. It would run a command in each of them, which is nothing that kwok can do.
var withoutPods = interceptor.Funcs{
	Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		err := c.Get(ctx, key, object, options...)
		if secret, ok := object.(*corev1.Secret); ok && key.Name == v1beta1constants.SecretNameCloudProvider {
			delete(secret.Data, kubernetes.KubeConfig)
		}
		return err
	},
}

// providerLocal is the container that provider-local's webhook adds to the Deployment, in the same pod.
func (s *shoot) providerLocal(ctx context.Context, namespace string, port int) (string, []string) {
	var d appsv1.Deployment
	Expect(seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "machine-controller-manager"}, &d)).To(Succeed())
	container := machinecontrollermanager.ProviderSidecarContainer(s.cluster.Shoot, namespace, local.Name, "")
	return providerLocal, inside(ctx, &d, container.Args, &pod{port: port})
}

// runMachines is a double of the kubelets that run in the Pods of a Shoot's machines, until the end of the spec.
func (s *shoot) runMachines(ctx context.Context, namespace string) {
	registered := map[string]bool{}
	again(ctx, func(ctx context.Context) {
		var pods corev1.PodList
		if err := infra.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": "machine"}); ctx.Err() == nil {
			Expect(err).NotTo(HaveOccurred())
			Expect(s.registerNodes(ctx, pods.Items, registered)).To(Succeed())
			Expect(abandonNodes(ctx, pods.Items, registered)).To(Succeed())
		}
	})
}

// again does something every now and then, until the end of the spec.
func again(ctx context.Context, do func(context.Context)) {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	DeferCleanup(func() { stop(); <-done })
	go func() {
		defer GinkgoRecover()
		defer close(done)
		for tick := time.NewTicker(interval); ; {
			select {
			case <-life.Done():
				tick.Stop()
				return
			case <-tick.C:
				do(life)
			}
		}
	}()
}

// registerNodes has each Pod that runs register its Node, once. A kubelet needs longer to start than provider-local to see that the Pod
// runs: it would take a Node that is there before for one that another machine left.
func (s *shoot) registerNodes(ctx context.Context, pods []corev1.Pod, registered map[string]bool) error {
	for _, pod := range pods {
		started := slices.ContainsFunc(s.machines(ctx), func(m machinev1alpha1.Machine) bool { return m.Labels[machinev1alpha1.NodeLabelKey] == pod.Name })
		if !started || registered[pod.Name] || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		node := fakeNode(pod.Name, "4")
		node.Spec.ProviderID = pod.Name // as the webhook of provider-local does
		if err := target.Create(ctx, node); err != nil {
			return fmt.Errorf("register node: %w", err)
		}
		registered[pod.Name] = true
	}
	return nil
}

// abandonNodes has kwok look no more after the Nodes of Pods that are gone.
func abandonNodes(ctx context.Context, pods []corev1.Pod, registered map[string]bool) error {
	for name := range registered {
		if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == name }) {
			continue
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, virtual.KwokAnnotation)
		if err := target.Patch(ctx, node, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("abandon node: %w", err)
		}
		delete(registered, name)
	}
	return nil
}
