// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// preparersOf returns the pods that pull images, by Node.
func preparersOf(pods []*corev1.Pod) map[string][]*corev1.Pod {
	byNode := map[string][]*corev1.Pod{}
	for _, p := range pods {
		if p.Labels[plan.Label] != "" && p.Spec.NodeName != "" {
			byNode[p.Spec.NodeName] = append(byNode[p.Spec.NodeName], p)
		}
	}
	return byNode
}

// imagesText describes how far the images are that these pods pull on a machine.
func imagesText(pods []*corev1.Pod) string {
	missing := false
	for _, p := range pods {
		done, _, failure := plan.Judge(p)
		if failure != nil {
			return oneLine(string(failure.Reason) + ": " + failure.Message)
		}
		missing = missing || !done
	}
	switch {
	case len(pods) == 0:
		return ""
	case missing:
		return "being pulled"
	}
	return "pulled"
}

// asksForImages reports whether images are asked for on the machines of a MachineDeployment.
func (r *reading) asksForImages(d *v1alpha1.MachineDeployment) bool {
	if all, err := v1alpha1.ParsePreparations(pool.PrepareText(d)); err != nil || len(all) > 0 {
		return true
	}
	for _, one := range r.Reserves {
		if one.Namespace != d.Namespace || one.Spec.Suspend || len(one.Spec.Prepare) == 0 || one.Labels[v1beta1.ReserveLabel] != "" { // users of namespaces ask for those
			continue
		}
		if selects, err := pool.Selection(one.Spec.Pools); err == nil && selects(d) {
			return true
		}
	}
	return false
}

// inspectImages reports images that nothing pulls, although a reserve is complete.
func (r *reading) inspectImages(object string, z Zone) {
	idle := func(m Machine) bool { return m.State == ReserveReady && r.At.Sub(m.Since) >= attendance }
	if z.Prepared == nil || r.PodsUnknown || !slices.ContainsFunc(z.Machines, idle) || slices.ContainsFunc(z.Machines, func(m Machine) bool { return m.Images != "" }) {
		return
	}
	r.addProblem(noted, object, "images are requested, but no controller pulls them", "run machine-controller-manager with preparation among its --controllers: see docs/prepared.md")
}
