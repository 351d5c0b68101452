// SPDX-License-Identifier: Apache-2.0

package stores_test

import (
	"context"
	"errors"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
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
	for _, o := range []any{owned, &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "alone", OwnerReferences: []metav1.OwnerReference{{UID: "set"}}}}} {
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
		{stores.Indexed[*mcm.Machine](machines, stores.Orphans, "here"), 1},
		{stores.Indexed[*mcm.Machine](machines, stores.Orphans, "there"), 0},
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

func TestInformersBeginWithThePresentState(t *testing.T) {
	server := sim.New(sim.Options{ManagedFields: true})
	defer server.Close()
	config := server.ConfigFor("user")
	client, theirs := versioned.NewForConfigOrDie(config), stock.NewForConfigOrDie(config).MachineV1alpha1()
	_, err := client.MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(t.Context(), &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
	_, err2 := theirs.MachineSets(fixture.Namespace).Create(t.Context(), &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
	_, err3 := theirs.Machines(fixture.Namespace).Create(t.Context(), &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
	_, err4 := theirs.MachineClasses(fixture.Namespace).Create(t.Context(), &mcm.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
	if err := errors.Join(err, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	server.WatchLists(false)
	server.Stale("", time.Hour)
	server.Lag("", sim.Constantly(time.Hour))
	ctx, end := context.WithCancel(t.Context())
	informers := stores.New(client, metav1.NamespaceAll)
	all := []cache.SharedIndexInformer{informers.Deployments(), informers.Sets(), informers.Machines(), informers.Classes()}
	informers.Start(ctx)
	defer informers.Shutdown()
	defer end()
	for i, informer := range all {
		if !cache.WaitFor(ctx, "", informer.HasSyncedChecker()) || len(informer.GetStore().List()) != 1 {
			t.Errorf("informer %d shows %d objects", i, len(informer.GetStore().List()))
		}
		for _, item := range informer.GetStore().List() {
			object, err := meta.Accessor(item)
			if _, read := item.(*v1alpha1.MachineDeployment); err != nil || read != (len(object.GetManagedFields()) > 0) {
				t.Errorf("informer %d keeps managed fields %v", i, object.GetManagedFields())
			}
		}
	}
}

func TestAMachineIsNotedWhenItsPartInTheReserveChanges(t *testing.T) {
	spare := func(phase mcm.MachinePhase, change ...func(*mcm.Machine)) *mcm.Machine {
		m := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.ReserveAnnotation: "marked"}}}
		m.Status.CurrentStatus.Phase = phase
		for _, c := range change {
			c(m)
		}
		return m
	}
	serves := func(m *mcm.Machine) { m.Annotations = nil }
	of := func(set types.UID) func(*mcm.Machine) {
		return func(m *mcm.Machine) {
			m.OwnerReferences = []metav1.OwnerReference{{UID: set, Controller: ptr.To(true)}}
		}
	}
	handlers := &recorded{}
	noted := 0
	if err := stores.OnSpares(handlers, func(any) { noted++ }); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		event string
		run   func()
		want  int
	}{
		{"a spare machine comes", func() { handlers.OnAdd(spare(mcm.MachinePending), false) }, 1},
		{"another machine comes", func() { handlers.OnAdd(spare(mcm.MachineRunning, serves), false) }, 0},
		{"it becomes ready", func() { handlers.OnUpdate(spare(mcm.MachinePending), spare(mcm.MachineRunning)) }, 1},
		{"it fails", func() { handlers.OnUpdate(spare(mcm.MachineRunning), spare(mcm.MachineFailed)) }, 1},
		{"it begins to serve", func() { handlers.OnUpdate(spare(mcm.MachineRunning), spare(mcm.MachineRunning, serves)) }, 1},
		{"it is being deleted", func() { handlers.OnUpdate(spare(mcm.MachineRunning), spare(mcm.MachineTerminating)) }, 1},
		{"it stays as it is", func() { handlers.OnUpdate(spare(mcm.MachineRunning), spare(mcm.MachineAvailable)) }, 0},
		{"it is adopted", func() { handlers.OnUpdate(spare(mcm.MachineRunning), spare(mcm.MachineRunning, of("set"))) }, 1},
		{"it belongs to another MachineSet", func() {
			handlers.OnUpdate(spare(mcm.MachineRunning, of("set")), spare(mcm.MachineRunning, of("other")))
		}, 1},
		{"another machine is adopted", func() {
			handlers.OnUpdate(spare(mcm.MachineRunning, serves), spare(mcm.MachineRunning, serves, of("set")))
		}, 0},
		{"it goes", func() { handlers.OnDelete(spare(mcm.MachineRunning)) }, 1},
		{"another machine goes", func() { handlers.OnDelete(spare(mcm.MachineRunning, serves)) }, 0},
		{"it went while nobody watched", func() { handlers.OnDelete(cache.DeletedFinalStateUnknown{Obj: spare(mcm.MachinePending)}) }, 1},
	} {
		noted = 0
		c.run()
		if noted != c.want {
			t.Errorf("%s: noted %d times, want %d", c.event, noted, c.want)
		}
	}
}

func TestAMachineSetIsNotedWhenItComesGoesOrGetsAnotherOwner(t *testing.T) {
	set := func(uid, owner types.UID, replicas int32) *mcm.MachineSet {
		s := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "set", UID: uid}, Spec: mcm.MachineSetSpec{Replicas: replicas}}
		if owner != "" {
			s.OwnerReferences = []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}}
		}
		return s
	}
	handlers := &recorded{}
	noted := 0
	if err := stores.OnSets(handlers, func(any) { noted++ }); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		event string
		run   func()
		want  int
	}{
		{"it comes", func() { handlers.OnAdd(set("1", "a", 1), false) }, 1},
		{"it is scaled", func() { handlers.OnUpdate(set("1", "a", 1), set("1", "a", 2)) }, 0},
		{"it is adopted", func() { handlers.OnUpdate(set("1", "", 1), set("1", "a", 1)) }, 1},
		{"it is left alone", func() { handlers.OnUpdate(set("1", "a", 1), set("1", "", 1)) }, 1},
		{"it was created again while nobody watched", func() { handlers.OnUpdate(set("1", "a", 1), set("2", "a", 1)) }, 1},
		{"it goes", func() { handlers.OnDelete(set("1", "a", 1)) }, 1},
		{"it went while nobody watched", func() { handlers.OnDelete(cache.DeletedFinalStateUnknown{Obj: set("1", "a", 1)}) }, 1},
	} {
		noted = 0
		c.run()
		if noted != c.want {
			t.Errorf("%s: noted %d times, want %d", c.event, noted, c.want)
		}
	}
}

// recorded is an informer that keeps its handler.
type recorded struct {
	cache.SharedIndexInformer
	cache.ResourceEventHandler
}

func (r *recorded) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	r.ResourceEventHandler = h
	return nil, nil
}
