// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// elsewhere moves machines and what has them to another namespace, where they have the names that
// they had.
func elsewhere(w *world) *world {
	move := func(o metav1.Object) {
		o.SetNamespace("elsewhere")
		o.SetUID("elsewhere-" + o.GetUID())
		owners := o.GetOwnerReferences()
		for i := range owners {
			owners[i].UID = "elsewhere-" + owners[i].UID
		}
	}
	for _, d := range w.Deployments {
		move(d)
	}
	for _, s := range w.Sets {
		move(s)
	}
	for _, m := range w.Machines {
		move(m)
		m.Labels["node"] = "elsewhere-" + m.Labels["node"]
	}
	for _, n := range w.Nodes {
		n.Name = "elsewhere-" + n.Name
	}
	return w
}

// kept is an overview of what is in a namespace.
func kept(v Overview, namespace string) Overview {
	v.Pools = slices.DeleteFunc(v.Pools, func(p Pool) bool { return p.Namespace != namespace })
	v.Troubles = slices.DeleteFunc(v.Troubles, func(t Trouble) bool { return !strings.Contains(t.Object, "/"+namespace+"/") })
	return v
}

var _ = Describe("Two namespaces with the same names", func() {
	It("are shown as each of them is alone", func() {
		here, there := newWorld(), newWorld()
		here.pool("a", 7, bounds("1:5"))
		here.machine("a", "m", phase("Failed"))
		here.pool("b", 1, excess(1), ready("False", "Unhealthy", "no", time.Second))
		there.pool("a", 2, excess(3))
		there.machine("a", "m")
		there.machine("a", "n", held(time.Hour))
		there.pool("b", 4)
		elsewhere(there)
		both := newWorld()
		for _, w := range []*world{there, here} {
			both.Deployments, both.Sets = append(both.Deployments, w.Deployments...), append(both.Sets, w.Sets...)
			both.Machines, both.Nodes = append(both.Machines, w.Machines...), append(both.Nodes, w.Nodes...)
		}
		Expect(kept(New(both.Objects), "default")).To(Equal(New(here.Objects)))
		Expect(kept(New(both.Objects), "elsewhere")).To(Equal(New(there.Objects)))
	})

	It("give up the reserves of the one whose manager drains alone", func() {
		w := newWorld()
		w.pool("a", 2, excess(3))
		w.Draining = map[string]bool{"elsewhere": true}
		Expect(New(w.Objects).Pools[0].Zones[0].Excess).To(Equal(3))
		w.Draining["default"] = true
		Expect(New(w.Objects).Pools[0].Zones[0].Excess).To(BeZero())
	})

	It("each have the pods that wait for their own reserve", func() {
		w := newWorld()
		reserved(w, bounds("1:5:1"), func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 5 })
		elsewhere(w)
		w.waiter("p")
		Expect(said(New(w.Objects))).To(Equal([]string{"machinedeployment/elsewhere/a: 1 pod cannot be scheduled, and a reserve machine here has room for them, but replicas are at max 5 -> raise max in the bounds"}))
	})
})

var _ = It("The reserve is compared with 64 kinds of waiting pods, and what is not known of the others is not told", func() {
	for kinds, want := range map[int]string{64: "no reserve machine has room for them (Full)", 65: "it is unknown whether the reserve has room for them"} {
		w := newWorld()
		reserved(w, bounds("1:5:1"))
		for i := range kinds {
			w.waiter(fmt.Sprintf("p%02d", i), asking(fmt.Sprint(9+i)))
		}
		Expect(said(New(w.Objects))).To(Equal([]string{fmt.Sprintf("pod/default/p00: %d pods cannot be scheduled, and %s -> kubectl -n default describe pod p00", kinds, want)}))
	}
})
