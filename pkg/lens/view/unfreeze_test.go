// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/test/sim"
)

// kindClient is what the clients of both kinds have in common.
type kindClient[T any] interface {
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	UpdateStatus(context.Context, T, metav1.UpdateOptions) (T, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
}

// frozen is an object that another client writes while machine-controller-manager unfreezes it.
type frozen[T interface{ metav1.Object }] struct {
	raw, seen kindClient[T]
	name      string
	// conditions is the name of their field.
	conditions string
	// thaw is what machine-controller-manager does to the status.
	thaw func(T)
}

func (f frozen[T]) patch(patch, subresource string) {
	GinkgoHelper()
	var subresources []string
	if subresource != "" {
		subresources = append(subresources, subresource)
	}
	patch = strings.ReplaceAll(patch, `"conditions"`, strconv.Quote(f.conditions))
	Expect(second(f.raw.Patch(context.Background(), f.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...))).To(Succeed())
}

// freeze returns how machine-controller-manager unfreezes the object: with a pause before each of two writes.
func (f frozen[T]) freeze() func(pause func(write int)) error {
	GinkgoHelper()
	f.patch(`{"metadata":{"labels":{"freeze":"True","a":"b"},"annotations":{"safety.machine.sapcloud.io/unfreeze":"True"}}}`, "")
	f.patch(`{"status":{"conditions":[{"type":"Available","status":"True"},{"type":"Frozen","status":"True"}]}}`, "status")
	return func(pause func(write int)) error {
		ctx := context.Background()
		object, err := f.seen.Get(ctx, f.name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		f.thaw(object)
		pause(1)
		if object, err = f.seen.UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil {
			return err
		}
		delete(object.GetLabels(), "freeze")
		delete(object.GetAnnotations(), "safety.machine.sapcloud.io/unfreeze")
		pause(2)
		return second(f.seen.Update(ctx, object, metav1.UpdateOptions{}))
	}
}

func (w world) frozenDeployment() frozen[*v1alpha1.MachineDeployment] {
	return frozen[*v1alpha1.MachineDeployment]{raw: w.raw.MachineDeployments(ns), seen: w.seen.MachineDeployments(ns), name: "pool", conditions: "conditions", thaw: func(d *v1alpha1.MachineDeployment) {
		d.Status.Conditions = d.Status.Conditions[:1]
	}}
}

func (w world) frozenSet() frozen[*v1alpha1.MachineSet] {
	GinkgoHelper()
	w.createSet()
	return frozen[*v1alpha1.MachineSet]{raw: w.raw.MachineSets(ns), seen: w.seen.MachineSets(ns), name: "set", conditions: "machineSetCondition", thaw: func(s *v1alpha1.MachineSet) {
		s.Status.Conditions = s.Status.Conditions[:1]
	}}
}

func (w world) frozenSets() int {
	GinkgoHelper()
	list, err := w.raw.MachineSets(ns).List(w, metav1.ListOptions{LabelSelector: "freeze=True"})
	Expect(err).NotTo(HaveOccurred())
	return len(list.Items)
}

// thaws expects that an object is unfrozen though another client writes it before one of the writes, and that this client's write stays.
func thaws[T interface{ metav1.Object }](w world, f frozen[T], resource string, write int, patch, subresource, kept string) {
	GinkgoHelper()
	Expect(f.freeze()(func(next int) {
		if next == write {
			f.patch(patch, subresource)
		}
	})).To(Succeed())
	now := &unstructured.Unstructured{Object: w.server.Get(v1alpha1.SchemeGroupVersion.WithResource(resource), ns, f.name).Object}
	Expect(now.GetLabels()).NotTo(HaveKey("freeze"))
	Expect(now.GetAnnotations()).NotTo(HaveKey("safety.machine.sapcloud.io/unfreeze"))
	conditions, _, err := unstructured.NestedSlice(now.Object, "status", f.conditions)
	Expect(err).NotTo(HaveOccurred())
	Expect(conditions).To(ContainElement(HaveKeyWithValue("type", "Available")))
	Expect(conditions).NotTo(ContainElement(HaveKeyWithValue("type", "Frozen")))
	Expect(json.Marshal(now)).To(ContainSubstring(kept), "what was written meanwhile stays")
}

// thawsAmongOthers freezes an object, removes a part of that by patches, and expects that the rest is
// removed, too, though many other objects are read in between.
func thawsAmongOthers[T interface{ metav1.Object }](w world, f frozen[T], metadata, status string) {
	GinkgoHelper()
	f.freeze()
	f.patch(metadata, "")
	f.patch(status, "status")
	object, err := f.seen.Get(w, f.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	for range 100 {
		Expect(second(f.seen.Get(w, "other", metav1.GetOptions{}))).To(Succeed())
	}
	write := f.seen.Update
	if status == "{}" {
		write = f.seen.UpdateStatus
	}
	f.thaw(object)
	delete(object.GetLabels(), "freeze")
	delete(object.GetAnnotations(), "safety.machine.sapcloud.io/unfreeze")
	f.patch(`{"metadata":{"labels":{"c":"d"}}}`, "")
	Expect(second(write(w, object, metav1.UpdateOptions{}))).To(Succeed())
}

var _ = Describe("An object that is unfrozen (V6)", func() {
	const (
		number    = `{"status":{"availableReplicas":3}}`
		condition = `{"status":{"conditions":[{"type":"Available","status":"False"},{"type":"Frozen","status":"True"},{"type":"ReserveReady","status":"True"}]}}`
		label     = `{"metadata":{"labels":{"c":"d"}}}`
		replicas  = `{"spec":{"replicas":4}}`
		thawed    = `{"status":{"conditions":[{"type":"Available","status":"True"}]}}`
		hidden    = `{"metadata":{"annotations":{"` + machine.AppliedExcessAnnotation + `":"1"}}}`
	)

	DescribeTable("is unfrozen as it is now", func(write int, patch, subresource, kept string) {
		inWorld(func(w world) { thaws(w, w.frozenDeployment(), "machinedeployments", write, patch, subresource, kept) })
		inWorld(func(w world) { thaws(w, w.frozenSet(), "machinesets", write, patch, subresource, kept) })
	},
		Entry("a number was written before its status", 1, number, "status", `"availableReplicas":3`),
		Entry("a condition was written before its status", 1, condition, "status", `"ReserveReady"`),
		Entry("replicas were written before its status", 1, replicas, "", `"replicas":4`),
		Entry("what is hidden was written before its status", 1, hidden, "", machine.AppliedExcessAnnotation+`":"1"`),
		Entry("a number was written before its labels", 2, number, "status", `"availableReplicas":3`),
		Entry("a label was written before its labels", 2, label, "", `"c":"d"`),
		Entry("replicas were written before its labels", 2, replicas, "", `"replicas":4`),
		Entry("what is hidden was written before its labels", 2, hidden, "", machine.AppliedExcessAnnotation+`":"1"`),
		Entry("its labels were unfrozen by another client", 2, `{"metadata":{"labels":{"freeze":null}}}`, "", `"a":"b"`),
	)

	It("is unfrozen though it is written again and again, for a while", func() {
		inWorld(func(w world) {
			f := w.frozenSet()
			conflict := apierrors.NewConflict(v1alpha1.Resource("machinesets"), "set", errors.New("written meanwhile"))
			failed := w.failing(w.server.OnWrite, 5, conflict)
			Expect(f.freeze()(func(int) {})).To(Succeed())
			Expect(*failed).To(Equal(5))
			failed = w.failing(w.server.OnWrite, 1000, conflict)
			Expect(apierrors.IsConflict(f.freeze()(func(int) {}))).To(BeTrue())
			Expect(*failed).To(BeNumerically("<", 20))
		})
	})

	It("is written once where nothing comes between, and ten times at most where something always does", func() {
		inWorld(func(w world) {
			f := w.frozenSet()
			thaw := f.freeze()
			before := len(w.server.Writes())
			Expect(thaw(func(int) {})).To(Succeed())
			Expect(len(w.server.Writes())-before).To(Equal(2), "the status, and the labels")
			failed := w.failing(w.server.OnWrite, 1000, apierrors.NewConflict(v1alpha1.Resource("machinesets"), "set", errors.New("written meanwhile")))
			Expect(apierrors.IsConflict(f.freeze()(func(int) {}))).To(BeTrue())
			Expect(*failed).To(Equal(10))
		})
	})

	It("is not asked for again when it cannot be read", func() {
		inWorld(func(w world) {
			f := w.frozenSet()
			thaw := f.freeze()
			Expect(thaw(func(write int) {
				if write == 1 {
					f.patch(label, "")
					w.server.Trouble("machinesets", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "ours")
				}
			})).To(Satisfy(apierrors.IsConflict), "the answer to the write")
		})
	})

	It("is remembered among few", func() {
		inWorld(func(w world) {
			f := w.frozenSet()
			f.freeze()
			for range 100 {
				Expect(second(f.seen.Get(w, "set", metav1.GetOptions{}))).To(Succeed())
			}
			is, most := view.RecentlyRead(w.clientset)
			Expect(is).To(Equal(most))
		})
	})

	DescribeTable("is unfrozen however much is read meanwhile that is not frozen", func(metadata, status string) {
		inWorld(func(w world) {
			other := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
			Expect(second(w.raw.MachineDeployments(ns).Create(w, other, metav1.CreateOptions{}))).To(Succeed())
			thawsAmongOthers(w, w.frozenDeployment(), metadata, status)
		})
		inWorld(func(w world) {
			other := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
			Expect(second(w.raw.MachineSets(ns).Create(w, other, metav1.CreateOptions{}))).To(Succeed())
			thawsAmongOthers(w, w.frozenSet(), metadata, status)
		})
	},
		Entry("its label is left", `{"metadata":{"annotations":null}}`, thawed),
		Entry("its annotation is left", `{"metadata":{"labels":{"freeze":null}}}`, thawed),
		Entry("its condition is left", `{"metadata":{"labels":{"freeze":null},"annotations":null}}`, `{}`),
	)

	It("is not unfrozen when it has been created anew", func() {
		inWorld(func(w world) {
			f := w.frozenSet()
			Expect(apierrors.IsConflict(f.freeze()(func(write int) {
				if write == 2 {
					Expect(w.raw.MachineSets(ns).Delete(w, f.name, metav1.DeleteOptions{})).To(Succeed())
					w.frozenSet().freeze()
				}
			}))).To(BeTrue())
			Expect(w.frozenSets()).To(Equal(1))
		})
	})

	It("is not the same as one that is not frozen, which must not be written at another version", func() {
		inWorld(func(w world) {
			f := w.frozenSet()
			set, err := f.seen.Get(w, f.name, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			f.patch(label, "")
			Expect(apierrors.IsConflict(second(f.seen.Update(w, set, metav1.UpdateOptions{})))).To(BeTrue())
		})
	})

	DescribeTable("is not unfrozen by a write", func(change func(*v1alpha1.MachineSet)) {
		inWorld(func(w world) {
			f := w.frozenSet()
			f.freeze()
			set, err := f.seen.Get(w, f.name, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			change(set)
			f.patch(label, "")
			Expect(apierrors.IsConflict(second(f.seen.Update(w, set, metav1.UpdateOptions{})))).To(BeTrue())
			Expect(w.frozenSets()).To(Equal(1))
		})
	},
		Entry("that changes something else too", func(s *v1alpha1.MachineSet) { delete(s.Labels, "freeze"); s.Spec.Replicas = 0 }),
		Entry("that changes nothing", func(*v1alpha1.MachineSet) {}),
		Entry("of an object that had its name before", func(s *v1alpha1.MachineSet) {
			delete(s.Labels, "freeze")
			s.UID = "another"
		}),
		Entry("of a version that was never read", func(s *v1alpha1.MachineSet) {
			delete(s.Labels, "freeze")
			s.ResourceVersion = "1"
		}),
	)
})
