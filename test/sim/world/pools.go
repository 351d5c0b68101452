// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// MachineDeployment returns [fixture.MachineDeployment] with Evenkeel's fields.
func MachineDeployment(name string, replicas int32, change ...func(*v1alpha1.MachineDeployment)) *v1alpha1.MachineDeployment {
	plain := fixture.MachineDeployment(name, replicas)
	d := &v1alpha1.MachineDeployment{ObjectMeta: plain.ObjectMeta, Spec: v1alpha1.MachineDeploymentSpec{StockMachineDeploymentSpec: plain.Spec}}
	d.Annotations = map[string]string{}
	for _, f := range change {
		f(d)
	}
	return d
}

// CreatePool creates a MachineDeployment and a MachineSet of its own with the given name.
func CreatePool(ours machineclient.MachineV1alpha1Interface, d *v1alpha1.MachineDeployment, set string) *mcm.MachineSet {
	ginkgo.GinkgoHelper()
	d = Create(ours.MachineDeployments(d.Namespace), d)
	s := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: set, Namespace: d.Namespace, OwnerReferences: OwnedBy("MachineDeployment", d)}}
	s.Labels, s.Spec.Selector, s.Spec.Template, s.Spec.Replicas = d.Spec.Template.Labels, d.Spec.Selector, d.Spec.Template, d.Spec.Replicas
	return Create(ours.MachineSets(d.Namespace), s)
}

// OwnedBy returns the reference to a MachineDeployment or MachineSet that controls an object.
func OwnedBy(kind string, owner metav1.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, mcm.SchemeGroupVersion.WithKind(kind))}
}

// NewMachine returns a machine of a MachineSet of a pool, in reserve or not.
func NewMachine(pool, name string, set metav1.Object, inReserve bool) *mcm.Machine {
	return fixture.Machine(name, func(m *mcm.Machine) {
		m.Labels, m.OwnerReferences = map[string]string{"name": pool}, OwnedBy("MachineSet", set)
		if inReserve {
			m.Annotations = map[string]string{v1alpha1.ReserveAnnotation: v1alpha1.Reserve{Since: time.Now().Truncate(time.Second)}.String()}
		}
	})
}

// InReserve reports whether a machine has the reserve annotation.
func InReserve(m *mcm.Machine) bool { return m.Annotations[v1alpha1.ReserveAnnotation] != "" }

// Release takes a machine out of the reserve as the controller of MachineDeployments does: first the taints
// of its Node, then the annotation.
func Release(ctx context.Context, core kubernetes.Interface, ours versioned.Interface, m *mcm.Machine) error {
	node, err := core.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	node.Spec.Taints = nil
	if _, err := core.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	m = m.DeepCopy()
	delete(m.Annotations, v1alpha1.ReserveAnnotation)
	_, err = ours.MachineV1alpha1().Machines(m.Namespace).Update(ctx, m, metav1.UpdateOptions{})
	return err
}

// MarkUnschedulable gives a pod the status of one for which the scheduler found no Node.
func MarkUnschedulable(p *corev1.Pod) {
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
}
