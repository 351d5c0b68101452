// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"reflect"
	"slices"
	"strconv"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/stores"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

func stored[T any](indexers cache.Indexers, objects []T) cache.Indexer {
	s := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	for _, o := range objects {
		if err := s.Add(o); err != nil {
			panic(err)
		}
	}
	return s
}

func (w *world) stores() pool.Source {
	return &stores.Source{Kinds: stores.Kinds{
		Sets: stored(stores.OwnerIndex(), w.Sets), Machines: stored(stores.Machines(), w.Machines), Classes: stored(nil, w.Classes),
		Nodes: stored(nil, w.Nodes), Pods: stored(stores.PodIndex(), w.Pods),
	}}
}

var _ = Describe("A snapshot", func() {
	It("is the same from a list in any order and from informers' stores, and changes nothing of what it is read from", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			w := drawWorld(t)
			w.Sets = shuffled(t, w.Sets)
			before, list := w.deployment.DeepCopy(), pool.NewList(w.Objects)
			sets := slices.Clone(list.Sets(w.deployment.UID))
			want := pool.Read(w.deployment, list, noon)
			if !slices.Equal(list.Sets(w.deployment.UID), sets) {
				t.Fatal("the source's MachineSets were put into another order")
			}
			w.Sets, w.Machines, w.Nodes, w.Pods = shuffled(t, w.Sets), shuffled(t, w.Machines), shuffled(t, w.Nodes), shuffled(t, w.Pods)
			if got := w.read(); !reflect.DeepEqual(got, want) {
				t.Fatalf("read %+v\nin another order %+v", want, got)
			}
			if got := pool.Read(w.deployment, w.stores(), noon); !reflect.DeepEqual(got, want) {
				t.Fatalf("read %+v\nfrom stores %+v", want, got)
			}
			if !reflect.DeepEqual(w.deployment, before) {
				t.Fatalf("the MachineDeployment was %+v and is %+v", before, w.deployment)
			}
		})
	})

	It("gives a Machine the Node that it names unless their provider ids contradict that", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			w := drawWorld(t)
			for _, m := range w.read().Machines {
				named := nodeNamed(w.Nodes, m.Object.Labels[mcm.NodeLabelKey])
				if m.Node != nil && m.Node != named {
					t.Fatalf("%s has Node %s", m.Object.Name, m.Node.Name)
				}
				if named == nil {
					continue
				}
				// The drawn ids have one letter for their scheme and one for their machine.
				own, its := m.Object.Spec.ProviderID, named.Spec.ProviderID
				contradicts := own != "" && its != "" && own[0] == its[0] && own[len(own)-1] != its[len(its)-1]
				if (m.Node == nil) != contradicts {
					t.Fatalf("%s with %q has Node with %q: %t", m.Object.Name, own, its, m.Node != nil)
				}
			}
		})
	})

	It("has the same but the pods of machines without the mark, if only the reserve is read", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			w := drawWorld(t)
			want := w.read()
			for i := range want.Machines {
				if m := &want.Machines[i]; !m.Marked() {
					m.Pods, m.NonTolerating = 0, 0
				}
			}
			if got := pool.ReadReserve(w.deployment, pool.NewList(w.Objects), noon); !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v instead of %+v", got, want)
			}
		})
	})

	It("has numbers that agree", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			w := drawWorld(t)
			s := w.read()
			exist, ready := 0, 0
			for _, m := range s.Machines {
				if !m.Marked() || m.Leaving() || pool.Unhealthy(m.Phase()) {
					continue
				}
				if exist++; m.Ready() {
					ready++
				}
			}
			if e, r := pool.CountSpares(w.deployment, pool.NewList(w.Objects)); e != exist || r != ready {
				t.Fatalf("%d spare machines, %d ready, but a snapshot has %d and %d", e, r, exist, ready)
			}
			visible := pool.VisibleReplicas(s.Workload, s.Applied)
			if s.Workload < 0 || s.Workload > s.Replicas || visible < s.Workload || visible > s.Workload+s.Applied.Excess || visible > max(s.Workload, s.Applied.Max) {
				t.Fatalf("T %d, R %d, A %+v, visible %d", s.Replicas, s.Workload, s.Applied, visible)
			}
			for _, m := range s.Machines {
				if m.NonTolerating > m.Pods || m.Unseen && m.Pods > 0 || m.Reserve() && !m.Marked() {
					t.Fatalf("%+v", m)
				}
			}
		})
	})
})

func nodeNamed(nodes []*corev1.Node, name string) *corev1.Node {
	for _, n := range nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func shuffled[T any](t *rapid.T, list []T) []T { return rapid.Permutation(list).Draw(t, "order") }

var _ = Describe("Setting the machines for workload", func() {
	It("is what is read afterwards, keeps growth waiting, and shares nothing with what was", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			d := drawWorld(t).deployment
			r := rapid.Int32Range(-2, 2_000_000_000).Draw(t, "r")
			after := *d
			waiting := d.Spec.Replicas - pool.Workload(d, d.Spec.Replicas)
			before := d.DeepCopy()
			setWorkload(&after, r)
			if !reflect.DeepEqual(d, before) {
				t.Fatalf("%+v became %+v", before, d)
			}
			if got := pool.Workload(&after, after.Spec.Replicas); got != max(0, r) {
				t.Fatalf("set %d, read %d", r, got)
			}
			if got := after.Spec.Replicas - pool.Workload(&after, after.Spec.Replicas); got != waiting {
				t.Fatalf("%d waited, now %d", waiting, got)
			}
			if _, set := d.Annotations[machine.AppliedReplicasAnnotation]; !set && (len(after.Annotations) != len(d.Annotations) || after.Spec.Replicas != max(0, r)) {
				t.Fatalf("%+v became %+v", d, after)
			}
		})
	})

	It("and those that wait is what is read afterwards", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			d := drawWorld(t).deployment
			r, waiting := rapid.Int32Range(-2, 1_000_000_000).Draw(t, "r"), rapid.Int32Range(-2, 1_000_000_000).Draw(t, "waiting")
			after := *d
			pool.Resize(&after, r, waiting)
			got := pool.Workload(&after, after.Spec.Replicas)
			if got != max(0, r) || after.Spec.Replicas-got != max(0, waiting) {
				t.Fatalf("set %d and %d, read %d of %d", r, waiting, got, after.Spec.Replicas)
			}
			if want := pool.VisibleReplicas(int(got), pool.AppliedOf(d, d.Spec.Replicas)); pool.Visible(&after) != want {
				t.Fatalf("%d are visible of %d, want %d", pool.Visible(&after), got, want)
			}
		})
	})

	It("changes nothing where it is the same", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			d := drawWorld(t).deployment
			d.Spec.Replicas = max(0, d.Spec.Replicas)
			after := *d
			setWorkload(&after, pool.Workload(d, d.Spec.Replicas))
			if after.Spec.Replicas != d.Spec.Replicas || pool.Workload(&after, after.Spec.Replicas) != pool.Workload(d, d.Spec.Replicas) {
				t.Fatalf("%+v became %+v", d, after)
			}
		})
	})

	It("does not overflow", func() {
		d := &machine.MachineDeployment{}
		d.Spec.Replicas, d.Annotations = 2_000_000_000, map[string]string{machine.AppliedReplicasAnnotation: "0"}
		setWorkload(d, 2_000_000_000)
		if d.Spec.Replicas != 1<<31-1 || d.Annotations[machine.AppliedReplicasAnnotation] != strconv.Itoa(2_000_000_000) {
			Fail(strconv.Itoa(int(d.Spec.Replicas)))
		}
	})
})

var _ = It("Toleration of the reserve taint is that of Kubernetes", func() {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}
	rapid.Check(GinkgoTB(), func(t *rapid.T) {
		toleration := corev1.Toleration{
			Key:      rapid.SampledFrom([]string{"", machine.ReserveTaintKey, "other"}).Draw(t, "key"),
			Operator: rapid.SampledFrom([]corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, "x"}).Draw(t, "operator"),
			Value:    rapid.SampledFrom([]string{"", "1"}).Draw(t, "value"),
			Effect:   rapid.SampledFrom(append(effects, "")).Draw(t, "effect"),
		}
		effect := rapid.SampledFrom(effects).Draw(t, "taint")
		pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{toleration}}}
		want := toleration.ToleratesTaint(klog.Background(), &corev1.Taint{Key: machine.ReserveTaintKey, Effect: effect}, false)
		if got := pool.ToleratesReserve(pod, []corev1.TaintEffect{effect}); got != want {
			t.Fatalf("%+v tolerates %s: %t, Kubernetes says %t", toleration, effect, got, want)
		}
		pod.Spec.Tolerations = append([]corev1.Toleration{{Key: "other"}}, pod.Spec.Tolerations...)
		pod.Spec.Tolerations = pool.ReserveTolerations(pod)
		if got := pool.ToleratesReserve(pod, []corev1.TaintEffect{effect}); got != want {
			t.Fatalf("with the tolerations that a store keeps of %+v %s is tolerated: %t", toleration, effect, got)
		}
	})
})
