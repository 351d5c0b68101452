// SPDX-License-Identifier: Apache-2.0

package stores_test

import (
	"testing"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/stores"
)

// That a snapshot of stores is that of a list is a law of package pool.

func TestWithoutATargetClusterThereAreNoNodesAndNoPods(t *testing.T) {
	source := &stores.Source{Kinds: stores.Kinds{Machines: cache.NewIndexer(cache.MetaNamespaceKeyFunc, stores.Machines())}}
	if source.Node("a") != nil || len(source.Pods("a")) > 0 {
		t.Error("there is something")
	}
}

func TestAnIndexLeavesOutWhatHasNoValue(t *testing.T) {
	machines := cache.NewIndexer(cache.MetaNamespaceKeyFunc, stores.Machines())
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, stores.PodIndex())
	owned := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Name: "owned", Labels: map[string]string{mcm.NodeLabelKey: "n"}, OwnerReferences: []metav1.OwnerReference{{UID: "set", Controller: ptr.To(true)}}}}
	bound := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bound"}, Spec: corev1.PodSpec{NodeName: "n"}}
	for _, o := range []any{owned, &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Name: "alone", OwnerReferences: []metav1.OwnerReference{{UID: "set"}}}}} {
		if err := machines.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []any{bound, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "waits"}}} {
		if err := pods.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		found []*mcm.Machine
		want  int
	}{
		{stores.Indexed[*mcm.Machine](machines, stores.ByOwner, "set"), 1},
		{stores.Indexed[*mcm.Machine](machines, stores.ByNode, "n"), 1},
		{stores.Indexed[*mcm.Machine](machines, stores.ByNode, ""), 0},
	} {
		if len(c.found) != c.want {
			t.Errorf("found %d, want %d", len(c.found), c.want)
		}
	}
	if n := len(stores.Indexed[*corev1.Pod](pods, stores.ByNode, "")); n > 0 {
		t.Errorf("%d pods without a Node are indexed", n)
	}
}

func TestAControllerIsFoundByItsUIDAndNotByItsNameAlone(t *testing.T) {
	sets := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := sets.Add(&mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "set", UID: "now"}}); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[types.UID]bool{"now": true, "before": false} {
		m := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", OwnerReferences: []metav1.OwnerReference{{Name: "set", UID: uid, Controller: ptr.To(true)}}}}
		if set := stores.Controller[mcm.MachineSet](sets, m); (set != nil) != want {
			t.Errorf("%s: found %v", uid, set)
		}
		m.Namespace = "other"
		if set := stores.Controller[mcm.MachineSet](sets, m); set != nil {
			t.Errorf("found %v of another namespace", set)
		}
	}
	if set := stores.Controller[mcm.MachineSet](sets, &mcm.Machine{}); set != nil {
		t.Errorf("found %v of a machine that nothing controls", set)
	}
}
