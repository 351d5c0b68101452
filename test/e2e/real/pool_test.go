// SPDX-License-Identifier: Apache-2.0

package real

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// pool is one MachineDeployment of real machines with one core each, in a zone of its own.
type pool struct {
	name string
	kube kubernetes.Interface
	ours versioned.Interface
}

func poolOf(c *localcluster.Cluster, name string) pool {
	return pool{name, kubernetes.NewForConfigOrDie(c.Config()), versioned.NewForConfigOrDie(c.Config())}
}

// hardware is the rest of a class's providerSpec.
type hardware string

// healthTimeout is how long a machine may be unhealthy until it is replaced, and how long it is drained at most.
const healthTimeout = 20 * time.Second

const small hardware = `"capacity":{"cpu":"1","memory":"512Mi","pods":"30"}`

func newPool(ctx context.Context, name string, replicas, excess int32, h hardware) pool {
	GinkgoHelper()
	p := poolOf(cluster, name)
	p.create(ctx, replicas, excess, h)
	return p
}

func (p pool) create(ctx context.Context, replicas, excess int32, h hardware) {
	GinkgoHelper()
	_, err := p.kube.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: p.name}, StringData: map[string]string{"userData": "none"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	class := &machine.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: p.name}, Provider: "virtual", SecretRef: &corev1.SecretReference{Name: p.name, Namespace: namespace},
		ProviderSpec: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"zone":%q,"region":"local","instanceType":"real.small","real":true,%s}`, p.name, h)},
	}
	_, err = p.ours.MachineV1alpha1().MachineClasses(namespace).Create(ctx, class, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	md := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: p.name, Annotations: map[string]string{
		machine.BoundsAnnotation: fmt.Sprintf("0:20:%d", excess)}}}
	md.Spec.Replicas = replicas
	md.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": p.name}}
	md.Spec.Strategy = machine.MachineDeploymentStrategy{Type: "RollingUpdate", RollingUpdate: &machine.RollingUpdateMachineDeployment{
		UpdateConfiguration: machine.UpdateConfiguration{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}}
	md.Spec.Template.Labels = map[string]string{"name": p.name}
	md.Spec.Template.Spec.Class = machine.ClassSpec{Kind: "MachineClass", Name: p.name}
	md.Spec.Template.Spec.MachineConfiguration = &machine.MachineConfiguration{
		MachineHealthTimeout: &metav1.Duration{Duration: healthTimeout}, MachineDrainTimeout: &metav1.Duration{Duration: healthTimeout}}
	_, err = p.ours.MachineV1alpha1().MachineDeployments(namespace).Create(ctx, md, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(p.ours.MachineV1alpha1().MachineDeployments(namespace).Delete(ctx, p.name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(p.nodes).WithContext(ctx).Should(BeEmpty())
	})
}

func (p pool) patch(ctx context.Context, merge string) {
	GinkgoHelper()
	_, err := p.ours.MachineV1alpha1().MachineDeployments(namespace).Patch(ctx, p.name, types.MergePatchType, []byte(merge), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// nodes are the Nodes of the pool by name: "open", "closed", or why not.
func (p pool) nodes(ctx context.Context) (map[string]string, error) {
	list, err := p.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelTopologyZone + "=" + p.name})
	if err != nil {
		return nil, err
	}
	nodes := map[string]string{}
	for _, n := range list.Items {
		nodes[n.Name] = looksOf(&n)
	}
	return nodes, nil
}

// looksOf says whether a Node is ready, and open, closed or still registering.
func looksOf(n *corev1.Node) string {
	words := []string{"open"}
	switch {
	case hasTaint(n, machine.RegistrationTaintKey):
		words[0] = "registering"
	case hasTaint(n, machine.ReserveTaintKey):
		words[0] = "closed"
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue || c.Type != corev1.NodeReady && c.Status == corev1.ConditionTrue {
			words = append(words, string(c.Type), string(c.Status))
		}
	}
	return strings.Join(words, " ")
}

func hasTaint(n *corev1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// looks are the sorted states of the pool's Nodes.
func (p pool) looks(ctx context.Context) ([]string, error) {
	nodes, err := p.nodes(ctx)
	all := []string{}
	for _, state := range nodes {
		all = append(all, state)
	}
	slices.Sort(all)
	return all, err
}

// rests waits until the pool has that many open and closed Nodes, and no others.
func (p pool) rests(ctx context.Context, open, closed int) {
	GinkgoHelper()
	want := append(slices.Repeat([]string{"closed"}, closed), slices.Repeat([]string{"open"}, open)...)
	Eventually(p.looks).WithContext(ctx).Should(Equal(want))
}

// node returns a Node that looks like that.
func (p pool) node(ctx context.Context, looks string) string {
	GinkgoHelper()
	nodes, err := p.nodes(ctx)
	Expect(err).NotTo(HaveOccurred())
	for name, state := range nodes {
		if state == looks {
			return name
		}
	}
	Fail(fmt.Sprintf("no Node is %s: %v", looks, nodes))
	return ""
}

// suffer sets the faults of the virtual provider, and none at the end.
func suffer(ctx context.Context, faults string) {
	GinkgoHelper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: virtual.FaultsConfigMap}, Data: map[string]string{virtual.FaultsKey: faults}}
	configs := kube.CoreV1().ConfigMaps(namespace)
	_, err := configs.Create(ctx, config, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = configs.Update(ctx, config, metav1.UpdateOptions{})
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(configs.Delete(ctx, virtual.FaultsConfigMap, metav1.DeleteOptions{})).To(Or(Succeed(), Satisfy(apierrors.IsNotFound)))
	})
}
