// SPDX-License-Identifier: Apache-2.0

package large

import (
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// rolled is how many machines of a MachineDeployment a rolling update has replaced.
const rolled = 20

// outage has all Nodes of a zone fail, and then decides about all reserves and zones.
func outage(machines int) (reserves, zones *decisions, err error) {
	f := newFleet(machines)
	if _, _, err := f.reserve(); err != nil {
		return nil, nil, err
	}
	f.failZone("z0")
	reserves = &decisions{name: "a zone fails: a reserve"}
	if err := f.decideRounds(reserves); err != nil {
		return nil, nil, err
	}
	zones, err = f.balance("a zone fails: zones")
	return reserves, zones, err
}

// rollout decides about all reserves in the middle of their rolling updates.
func rollout(machines int) (*decisions, error) {
	f := newFleet(machines)
	if _, _, err := f.reserve(); err != nil {
		return nil, err
	}
	for i := range f.deployments {
		f.startRollingUpdate(i)
	}
	d := &decisions{name: "a rolling update"}
	return d, f.decideRounds(d)
}

func (f *fleet) decideRounds(d *decisions) error {
	p, err := newPreview()
	for range rounds {
		if err == nil {
			_, err = f.decideAll(p, d)
		}
	}
	return err
}

// failZone has the Nodes of a zone no longer respond. Machines have the same numbers as their Nodes.
func (f *fleet) failZone(zone string) {
	for i, n := range f.nodes {
		if n.Labels[corev1.LabelTopologyZone] != zone {
			continue
		}
		node, m := n.DeepCopy(), f.machines[i].DeepCopy()
		node.Status.Conditions[0].Status = corev1.ConditionUnknown
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
		m.Status.CurrentStatus.Phase = mcm.MachineUnknown
		f.nodes[i], f.machines[i] = node, m
	}
}

// startRollingUpdate gives a MachineDeployment another template, and its last machines to the MachineSet of that.
func (f *fleet) startRollingUpdate(i int) {
	d, before := f.deployments[i].DeepCopy(), f.sets[i].DeepCopy()
	d.Spec.Template.Annotations = map[string]string{"version": "2"}
	set := before.DeepCopy()
	set.Name, set.UID = d.Name+"-next", types.UID(d.Name+"-next")
	set.Spec.Template = d.Spec.Template
	before.Spec.Replicas, set.Spec.Replicas = perPool-rolled, rolled
	f.deployments[i], f.sets[i] = d, before
	f.sets = append(f.sets, set)
	own := slices.Clone(f.machines[i*perPool : (i+1)*perPool])
	for j, m := range own[perPool-rolled:] {
		m = m.DeepCopy()
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, mcm.SchemeGroupVersion.WithKind("MachineSet"))}
		f.machines[(i+1)*perPool-rolled+j] = m
	}
}
