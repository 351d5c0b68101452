// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

const elsewhere = "elsewhere"

// move moves objects to the namespace elsewhere, where they have the names that they had, and UIDs,
// Nodes and pods of their own.
func move(o *Objects) *Objects {
	meta := func(m metav1.Object) {
		m.SetNamespace(elsewhere)
		m.SetUID(elsewhere + m.GetUID())
		owners := m.GetOwnerReferences()
		for i := range owners {
			owners[i].UID = elsewhere + owners[i].UID
		}
	}
	for _, d := range o.Deployments {
		meta(d)
	}
	for _, s := range o.Sets {
		meta(s)
	}
	for _, m := range o.Machines {
		meta(m)
		m.Labels[mcm.NodeLabelKey] = elsewhere + "-" + m.Labels[mcm.NodeLabelKey]
		m.Spec.ProviderID += "-" + elsewhere
	}
	for _, n := range o.Nodes {
		n.Name = elsewhere + "-" + n.Name
	}
	for _, p := range o.Pods {
		meta(p)
		if p.Spec.NodeName != "" {
			p.Spec.NodeName = elsewhere + "-" + p.Spec.NodeName
		}
	}
	for _, c := range o.Classes {
		meta(c)
	}
	for _, r := range o.Reserves {
		meta(r)
	}
	for _, b := range o.Balancers {
		meta(b)
	}
	for _, w := range o.Workers {
		w.SetNamespace(elsewhere)
	}
	for _, all := range o.Workloads {
		for _, w := range all {
			meta(w)
		}
	}
	return o
}

// join returns the objects of both.
func join(a, b *Objects) *Objects {
	all := *a
	all.Deployments, all.Sets, all.Machines = slices.Concat(a.Deployments, b.Deployments), slices.Concat(a.Sets, b.Sets), slices.Concat(a.Machines, b.Machines)
	all.Classes, all.Nodes, all.Pods = slices.Concat(a.Classes, b.Classes), slices.Concat(a.Nodes, b.Nodes), slices.Concat(a.Pods, b.Pods)
	all.Reserves, all.Balancers, all.Own = slices.Concat(a.Reserves, b.Reserves), slices.Concat(a.Balancers, b.Balancers), nil
	if a.Own != nil || b.Own != nil {
		all.Own = all.Pods
	}
	all.Garden, all.Workers = a.Garden || b.Garden, slices.Concat(a.Workers, b.Workers)
	all.Workloads = map[schema.GroupVersionResource][]*unstructured.Unstructured{}
	for _, o := range []*Objects{a, b} {
		for r, objects := range o.Workloads {
			all.Workloads[r] = append(all.Workloads[r], objects...)
		}
	}
	return &all
}

// of keeps what is in a namespace.
func of(f Forecast, namespace string) Forecast {
	f.Plans = slices.DeleteFunc(slices.Clone(f.Plans), func(p Plan) bool { return p.Namespace != namespace })
	f.End.Pools = slices.DeleteFunc(slices.Clone(f.End.Pools), func(e PoolEnd) bool { return e.Namespace != namespace })
	f.End.Reserves = slices.DeleteFunc(slices.Clone(f.End.Reserves), func(e ReserveEnd) bool { return e.Namespace != namespace })
	f.End.Balancers = slices.DeleteFunc(slices.Clone(f.End.Balancers), func(e SharesEnd) bool { return e.Namespace != namespace })
	f.Notes = nil
	return f
}

func requesting(replicas int32) func(*api.MachineDeployment) {
	return func(d *api.MachineDeployment) { d.Spec.Replicas = replicas }
}

// tied has a pool of machines that were created in one second lose one of them. The first machines
// by name are gone already.
func tied(serving, gone int) func() *Objects {
	return func() *Objects {
		GinkgoHelper()
		o := stringAt()
		pool(o, "p", serving+gone, 0, requesting(int32(serving-1)))
		o.Machines = o.Machines[gone:]
		for _, m := range o.Machines {
			m.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
		}
		return o
	}
}

// evened has a pool of two zones, with an excess for both and growth of one.
func evened(excess string, replicas int32) func() *Objects {
	return func() *Objects {
		GinkgoHelper()
		o := stringAt()
		for _, name := range []string{"z1", "z2"} {
			pool(o, name, 1, 0, func(d *api.MachineDeployment) {
				d.Labels = map[string]string{"pool": "p"}
				d.Annotations = map[string]string{api.BalanceAnnotation: "ScaleUp", api.AppliedReplicasAnnotation: "1"}
				d.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{api.PoolExcessAnnotation: excess}
			})
		}
		o.Deployments[0].Spec.Replicas = replicas
		return o
	}
}

// classed has a pool with an excess in resources, of machines with this many CPUs.
func classed(cpu string) func() *Objects {
	return func() *Objects {
		GinkgoHelper()
		o := stringAt()
		pool(o, "p", 1, 0, func(d *api.MachineDeployment) { d.Annotations = map[string]string{api.BoundsAnnotation: "1:20:cpu=8"} })
		class := &mcm.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: fixture.Class}}
		class.NodeTemplate = &mcm.NodeTemplate{Capacity: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("8Gi")}}
		o.Classes, o.Nodes = append(o.Classes, class), nil
		return o
	}
}

// gardened has a pool whose bounds come from a Worker.
func gardened(maximum int64) func() *Objects {
	return func() *Objects {
		GinkgoHelper()
		o := stringAt()
		pool(o, "p", 1, 0)
		o.Garden = true
		o.Workers = append(o.Workers, &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "w", "namespace": fixture.Namespace},
			"status":   map[string]any{"machineDeployments": []any{map[string]any{"name": "p", "minimum": int64(1), "maximum": maximum}}},
		}})
		return o
	}
}

// balanced has a Balancer over two Deployments.
func balanced(a, b int, replicas int32) func() *Objects {
	return func() *Objects {
		GinkgoHelper()
		o := shop(a, b)
		o.Balancers[0].Spec.Replicas = ptr.To(replicas)
		return o
	}
}

// wishing has a Reserve that requests one machine more than its controller has seen.
func wishing(requested map[string]int, spec string) func() *Objects {
	return func() *Objects {
		GinkgoHelper()
		o := zones(requested)
		reserveOf(o, "shop", spec)
		o.Reserves[0].Spec.Replicas++
		return o
	}
}

func pooled(serving, reserve int, replicas int32, change ...func(*api.MachineDeployment)) func() *Objects {
	return func() *Objects {
		GinkgoHelper()
		o := stringAt()
		pool(o, "p", serving, reserve, append(change, requesting(replicas))...)
		return o
	}
}

// orphaned has a pool of a MachineDeployment that is made now, and of a MachineSet that it has yet to adopt.
func orphaned() *Objects {
	GinkgoHelper()
	o := pooled(2, 0, 2, func(d *api.MachineDeployment) { d.CreationTimestamp = metav1.NewTime(noon) })()
	o.Sets[0].OwnerReferences = nil
	return o
}

var _ = DescribeTable("A forecast of all namespaces is that of each, whatever has the same names elsewhere",
	func(newHere, newThere func() *Objects) {
		here, there := newHere(), move(newThere())
		alone, _ := told(*here, "")
		other, _ := told(*there, "")
		both, text := told(*join(here, there), "")
		Expect(both.End.Rest).To(BeTrue())
		Expect(of(both, fixture.Namespace)).To(Equal(of(alone, fixture.Namespace)), text)
		Expect(of(both, elsewhere)).To(Equal(of(other, elsewhere)), text)
	},
	Entry("growth, beside a smaller excess", pooled(3, 2, 4), pooled(2, 2, 2, func(d *api.MachineDeployment) { d.Spec.ExcessReplicas = ptr.To[int32](1) })),
	Entry("ties, of machines with the same names", tied(3, 0), tied(4, 1)),
	Entry("zones of a pool of the same name", evened("2", 4), evened("4", 1)),
	Entry("machines of a class of the same name", classed("2"), classed("4")),
	Entry("bounds of Workers of the same name", gardened(4), gardened(7)),
	Entry("Reserves of the same name", wishing(nil, "{"+everyZone+", replicas: 2}"), wishing(map[string]int{"z1": 2}, "{pools: {names: [z2]}, replicas: 3}")),
	Entry("Balancers, workloads and pods of the same names", balanced(2, 2, 9), balanced(4, 1, 3)),
	Entry("a MachineSet to adopt, beside an older MachineDeployment that would have it", orphaned, pooled(3, 0, 3)),
	Entry("one that is drained", pooled(3, 2, 3), pooled(3, 2, 3, func(d *api.MachineDeployment) { d.Annotations[api.DrainReserveAnnotation] = "true" })),
)

var _ = It("A forecast of a hibernated Shoot has no reserve", func() {
	o := gardened(4)()
	for _, d := range o.Deployments {
		d.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{api.PoolExcessAnnotation: "1"}
		d.Labels = map[string]string{"pool": "p"}
	}
	f, text := told(*o, "")
	Expect(f.End.Pools[0].New.Reserve).To(Equal(1), text)
	o.Clusters = []*unstructured.Unstructured{{Object: map[string]any{
		"metadata": map[string]any{"name": fixture.Namespace},
		"spec":     map[string]any{"shoot": map[string]any{"spec": map[string]any{"hibernation": map[string]any{"enabled": true}}}},
	}}}
	f, text = told(*o, "")
	Expect(f.End.Pools[0].New.Reserve).To(BeZero(), text)
})

var _ = It("New MachineDeployments of the same name in two namespaces have machines of their own", func() {
	whole := func(namespace string, replicas int) string {
		return fmt.Sprintf(`apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {name: new, namespace: %s}
spec:
  replicas: %d
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector: {matchLabels: {name: new}}
  template: {metadata: {labels: {name: new}}, spec: {class: {kind: MachineClass, name: %s}}}
`, namespace, replicas, fixture.Class)
	}
	f, text := told(*stringAt(), whole(fixture.Namespace, 2)+"---\n"+whole(elsewhere, 3))
	Expect(f.End.Rest).To(BeTrue())
	Expect(f.End.Pools).To(HaveLen(2))
	Expect(short(f.End.Pools[0])).To(Equal("R2 A0 serve  reserve  leave  new 2+0"), text)
	Expect(short(f.End.Pools[1])).To(Equal("R3 A0 serve  reserve  leave  new 3+0"), text)
})
