// SPDX-License-Identifier: Apache-2.0

package size_test

import (
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

func TestSize(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Size")
}

var now = time.Date(2026, time.March, 9, 0, 0, 0, 0, time.UTC)

// booted is a cluster with a MachineDeployment whose machines took so long to boot, the oldest first.
func booted(boots ...time.Duration) overview.Objects {
	plain := fixture.MachineDeployment("pool", int32(len(boots)))
	d := &v1alpha1.MachineDeployment{ObjectMeta: plain.ObjectMeta}
	d.Spec.StockMachineDeploymentSpec = plain.Spec
	d.UID = "pool"
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: fixture.Namespace, UID: "set", OwnerReferences: owned("MachineDeployment", "pool")}}
	set.Spec = mcm.MachineSetSpec{Replicas: int32(len(boots)), Selector: d.Spec.Selector, Template: d.Spec.Template}
	o := overview.Objects{At: now, Deployments: []*v1alpha1.MachineDeployment{d}, Sets: []*mcm.MachineSet{set}}
	for i, boot := range boots {
		name := string(rune('z' - i)) // names do not tell which is older
		created := now.Add(time.Duration(i-len(boots)) * time.Hour)
		o.Machines = append(o.Machines, fixture.Machine(name, func(m *mcm.Machine) {
			m.CreationTimestamp, m.OwnerReferences = metav1.NewTime(created), owned("MachineSet", "set")
			m.Labels = map[string]string{mcm.NodeLabelKey: name}
			m.Spec.ProviderID, m.Status.CurrentStatus.Phase = "virtual:///"+name, mcm.MachineRunning
		}))
		o.Nodes = append(o.Nodes, fixture.Node(name, func(n *corev1.Node) {
			n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(created.Add(boot))
		}))
	}
	return o
}

func owned(kind string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: kind, Name: string(uid), UID: uid, Controller: ptr.To(true)}}
}

// daemon is a pod of a DaemonSet on a Node.
func daemon(node string) *corev1.Pod {
	return fixture.Pod("daemon-"+node, func(p *corev1.Pod) {
		p.OwnerReferences, p.Spec.NodeName = owned("DaemonSet", "daemon"), node
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")}
	})
}
