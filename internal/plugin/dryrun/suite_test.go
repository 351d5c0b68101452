// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	balanceplan "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer"
	machineplan "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	releaseplan "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	pools "github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// suite is what synctest wants to know; specs run while TestDryRun does.
var suite *testing.T

func TestDryRun(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Dry run")
}

var noon = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

// settings are the controllers' defaults.
func settings() Settings {
	return Settings{
		Machines: machineplan.Settings{ProtectInRollout: true, SafetyUp: 2, SafetyDown: 1},
		Reserve:  machinetaint.Settings{SurplusPatience: machinetaint.DefaultSurplusPatience, BootPatience: machinetaint.DefaultBootPatience, Unready: pools.DefaultUnreadyLimits()},
		Zones:    balanceplan.Settings{Enabled: true, Mode: api.BalanceOff, Similar: similar.Defaults(), BootPatience: 10 * time.Minute, PoolLabels: []string{"pool"}, Unready: pools.DefaultUnreadyLimits()},
		Instant:  true,
		Release:  releaseplan.Settings{Schedulers: releaseplan.DefaultSchedulers(), Cutoff: releaseplan.DefaultCutoff, Patience: releaseplan.DefaultPatience, Even: true, Similar: similar.Defaults(), PoolLabels: []string{"pool"}},
	}
}

// clients know Deployments with a scale.
func clients() balancer.Clients {
	discovery := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	discovery.Resources = []*metav1.APIResourceList{
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true}, {Name: "deployments/scale", Kind: "Scale", Namespaced: true}}},
		{GroupVersion: "machine.sapcloud.io/v1alpha1", APIResources: []metav1.APIResource{
			{Name: "machinedeployments", Kind: "MachineDeployment", Namespaced: true}, {Name: "machinedeployments/scale", Kind: "Scale", Namespaced: true}}},
	}
	return balancer.Clients{Discovery: discovery}
}

// pool adds a MachineDeployment at rest: busy machines that serve, and machines in reserve, each a minute younger than the one
// before; they are named after it, with -a, -b and so on.
func pool(o *Objects, name string, serving, reserve int, change ...func(*api.MachineDeployment)) {
	GinkgoHelper()
	stock := fixture.MachineDeployment(name, int32(serving))
	d := &api.MachineDeployment{TypeMeta: stock.TypeMeta, ObjectMeta: stock.ObjectMeta, Spec: api.MachineDeploymentSpec{StockMachineDeploymentSpec: stock.Spec}}
	d.UID = types.UID(name)
	if reserve > 0 {
		d.Spec.ExcessReplicas, d.Spec.ReserveWitness = ptr.To(int32(reserve)), true
		d.Annotations = map[string]string{api.AppliedExcessAnnotation: fmt.Sprint(reserve), api.WantedExcessAnnotation: fmt.Sprint(reserve)}
	}
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, revision, "1")
	d.Finalizers = []string{machineplan.Finalizer}
	for _, c := range change {
		c(d)
	}
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name + "-set", UID: types.UID(name + "-set"), OwnerReferences: ownedBy("MachineDeployment", name)}}
	set.Spec = mcm.MachineSetSpec{Replicas: int32(serving + reserve), Template: *d.Spec.Template.DeepCopy(), Selector: &metav1.LabelSelector{MatchLabels: labelsOf(set.Name)}}
	set.Finalizers, set.Labels, set.Spec.Template.Labels = d.Finalizers, labelsOf(set.Name), labelsOf(set.Name)
	set.Annotations = map[string]string{revision: "1", "deployment.kubernetes.io/desired-replicas": fmt.Sprint(serving + reserve), "deployment.kubernetes.io/max-replicas": fmt.Sprint(serving + reserve + 1)}
	o.Deployments, o.Sets = append(o.Deployments, d), append(o.Sets, set)
	for i := range serving + reserve {
		add(o, fmt.Sprintf("%s-%c", name, 'a'+i), set.Name, noon.Add(time.Duration(i-60)*time.Minute), i >= serving)
	}
}

const revision = "deployment.kubernetes.io/revision"

// labelsOf are those of a MachineSet of pool, and of its machines.
func labelsOf(set string) map[string]string {
	return map[string]string{"name": strings.TrimSuffix(set, "-set"), mcm.DefaultMachineDeploymentUniqueLabelKey: "1"}
}

func ownedBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "machine.sapcloud.io/v1alpha1", Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
}

// add is a machine that runs, with its Node, and with a pod that takes it whole unless it is in reserve.
func add(o *Objects, name, set string, born time.Time, reserve bool) {
	m := fixture.Machine(name, func(m *mcm.Machine) {
		m.UID, m.CreationTimestamp, m.OwnerReferences = types.UID(name), metav1.NewTime(born), ownedBy("MachineSet", set)
		m.Labels = labelsOf(set)
		m.Labels[mcm.NodeLabelKey] = name
		m.Annotations = map[string]string{"machinepriority.machine.sapcloud.io": "3"}
		m.Spec.ProviderID = "virtual:///" + name
		m.Status.CurrentStatus.Phase = mcm.MachineRunning
	})
	node := fixture.Node(name)
	if reserve {
		taint := corev1.Taint{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}
		mark := api.Reserve{Since: born, Taints: []corev1.Taint{taint}, Annotations: map[string]string{
			api.ReserveAnnotation: born.Format(time.RFC3339), api.ScaleDownDisabledAnnotation: "true"}}
		m = pools.Mark(m, mark)
		m.Annotations[api.ReserveStateAnnotation] = "Held since " + mark.Annotations[api.ReserveAnnotation] + "; node " + name + " carries the reserve taint"
		node.Annotations, node.Spec.Taints = mark.Annotations, mark.Taints
	} else {
		o.Pods = append(o.Pods, fixture.Pod("on-"+name, func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = name, corev1.PodRunning }))
	}
	o.Machines, o.Nodes = append(o.Machines, m), append(o.Nodes, node)
}

// told is the prediction for a change, with its text; an empty change changes nothing.
func told(o Objects, change string) (Forecast, string) {
	GinkgoHelper()
	before := o
	if change != "" {
		changes, err := ParseChanges(strings.NewReader(change), Namespaces{Control: fixture.Namespace, Target: "shop"})
		Expect(err).NotTo(HaveOccurred())
		for _, c := range changes {
			o, err = o.Apply(c, nil)
			Expect(err).NotTo(HaveOccurred())
		}
	}
	f, err := New(GinkgoT().Context(), before, o, settings(), clients())
	Expect(err).NotTo(HaveOccurred())
	text := &strings.Builder{}
	Expect(f.Print(text, false)).To(Succeed())
	return f, text.String()
}

func patched(kind, name, fields string) string {
	version := map[string]string{"MachineDeployment": "machine.sapcloud.io/v1alpha1", "Balancer": "balancer.x-k8s.io/v1alpha1", "Reserve": "autoscaling.evenkeel.dev/v1alpha1", "CapacityBuffer": "autoscaling.x-k8s.io/v1beta1"}[kind]
	metadata := fmt.Sprintf("metadata: {name: %s}\n", name)
	if strings.HasPrefix(fields, "metadata:") {
		metadata = ""
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\n%s%s\n", version, kind, metadata, fields)
}

// stringAt returns the string at a path in a tree.
func stringAt() *Objects { return &Objects{At: noon, Target: true} }
