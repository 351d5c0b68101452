// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/app"
	"github.com/evenkeel/evenkeel/internal/plugin/read"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// suite is what virtual time wants to know; specs run while TestApp does.
var suite *testing.T

func TestApp(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Plugin")
}

var everything = slices.Concat(sim.Core, sim.Machine, []sim.Resource{
	{Group: "balancer.x-k8s.io", Version: "v1alpha1", Name: "balancers", Kind: "Balancer", Namespaced: true, Status: true},
	{Group: "autoscaling.evenkeel.dev", Version: "v1alpha1", Name: "federatedhorizontalpodautoscalers", Kind: "FederatedHorizontalPodAutoscaler", Namespaced: true, Status: true},
	{Group: "autoscaling.evenkeel.dev", Version: "v1alpha1", Name: "reserves", Kind: "Reserve", Namespaced: true, Status: true},
})

// scene is a cluster with a user at a command line.
type scene struct {
	*sim.Server
	clusters read.Clusters
}

func newScene(resources []sim.Resource) scene {
	GinkgoHelper()
	s := sim.New(sim.Options{Resources: resources})
	DeferCleanup(s.Close)
	c, err := read.New(s.ConfigFor("plugin"), s.ConfigFor("plugin"), fixture.Namespace)
	Expect(err).NotTo(HaveOccurred())
	return scene{s, c}
}

// run is the plugin with these arguments.
func (s scene) run(args ...string) (out string, err error) {
	var stdout, stderr bytes.Buffer
	root := app.RootAt(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &stdout, ErrOut: &stderr}, s.clusters)
	root.SetArgs(append([]string{}, args...)) // never nil, which would be the test binary's own
	err = root.ExecuteContext(GinkgoT().Context())
	return stdout.String(), err
}

// pool has one machine that serves and one in reserve.
func (s scene) pool(name string) {
	GinkgoHelper()
	ctx := GinkgoT().Context()
	ours := versioned.NewForConfigOrDie(s.ConfigFor("writer")).MachineV1alpha1()
	core := kubernetes.NewForConfigOrDie(s.ConfigFor("writer")).CoreV1()
	plain := fixture.MachineDeployment(name, 1)
	d := &v1alpha1.MachineDeployment{ObjectMeta: plain.ObjectMeta}
	d.Spec.StockMachineDeploymentSpec = plain.Spec
	d.Spec.ExcessReplicas, d.Spec.ReserveWitness = ptr.To(int32(1)), true
	d.Annotations = map[string]string{v1alpha1.AppliedExcessAnnotation: "1", v1alpha1.WantedExcessAnnotation: "1"}
	d, err := ours.MachineDeployments(fixture.Namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: plain.Spec.Template.Labels, OwnerReferences: owned("MachineDeployment", name, d.UID)}}
	set.Spec = mcm.MachineSetSpec{Replicas: 2, Selector: d.Spec.Selector, Template: d.Spec.Template}
	set, err = ours.MachineSets(fixture.Namespace).Create(ctx, set, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, machine := range []string{name + "-serves", name + "-waits"} {
		m, err := ours.Machines(fixture.Namespace).Create(ctx, fixture.Machine(machine, func(m *mcm.Machine) {
			m.OwnerReferences = owned("MachineSet", name, set.UID)
			m.Labels = map[string]string{"name": name, mcm.NodeLabelKey: machine}
			m.Spec.ProviderID = "virtual:///" + machine
			if machine == name+"-waits" {
				m.Annotations = map[string]string{v1alpha1.ReserveAnnotation: v1alpha1.Reserve{Since: time.Now().Truncate(time.Second)}.String()}
			}
		}), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		m.Status.CurrentStatus.Phase = mcm.MachineRunning
		_, err = ours.Machines(fixture.Namespace).UpdateStatus(ctx, m, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = core.Nodes().Create(ctx, fixture.Node(machine, func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "z1" }), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

func owned(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}
