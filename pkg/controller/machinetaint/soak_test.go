// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// batch is how many machines, Nodes and pods come and go at a time.
const batch = 100

var _ = Describe("In the long run", func() {
	It("what the controller holds returns to where it was when thousands of objects have come and gone", Label("soak"), func() {
		rounds := storm.Soak(3_600, 3*batch)
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			before := a.taint.Remembered()
			all := map[string]int{}
			for round := range rounds {
				for what, n := range a.comeAndGo(round) {
					all[what] += n
				}
			}
			for _, what := range []string{"machines", "removals"} {
				Expect(all[what]).To(BeNumerically(">", rounds), "it remembered some of them: "+what)
			}
			a.wrote(0)
			Expect(a.taint.Remembered()).To(Equal(before))
		})
	})
})

var _ = Describe("A MachineDeployment that is gone", func() {
	It("leaves nothing behind, whatever was under way for it", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx, user := context.Background(), a.user.MachineV1alpha1()
			d, err := user.MachineDeployments(fixture.Namespace).Get(ctx, "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			reduced, err := a.taint.Reduce(d, 2, 3)
			Expect(err).NotTo(HaveOccurred())
			reduced(nil)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			set.Spec.Replicas++
			resized, err := a.taint.Guards().Shrink(set)
			Expect(err).NotTo(HaveOccurred())
			set.ResourceVersion = "1000000" // no store shows that
			resized(set, nil)
			a.patch(`{"spec":{"replicas":3}}`) // a machine leaves the reserve
			time.Sleep(50 * time.Millisecond)  // the next decision comes later
			a.taint.Doubt(fixture.Namespace+"/pool", fixture.Machine("a"))
			a.taint.Opening(fixture.Namespace+"/pool", fixture.Machine("a"))
			for _, what := range []string{"memories", "freed", "reductions", "resizes", "doubts", "openings"} {
				Expect(a.taint.Remembered()).To(HaveKeyWithValue(what, 1))
			}
			Expect(user.MachineDeployments(fixture.Namespace).Delete(ctx, "pool", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(time.Second) // the controller sees that first
			Expect(a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Delete(ctx, "pool-1", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(10 * time.Minute)
			Expect(a.taint.Remembered()).To(HaveEach(BeZero()))
		})
	})
})

// comeAndGo has a batch come, be written, and go, and a MachineDeployment that another controller told of. It returns how much was
// remembered meanwhile.
func (a *alone) comeAndGo(round int) map[string]int {
	GinkgoHelper()
	ctx, delete := context.Background(), metav1.DeleteOptions{}
	set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(ctx, "pool-1", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for range batch {
		name := a.machine(set, true)
		_, err := a.core.CoreV1().Pods(fixture.Namespace).Create(ctx, fixture.Pod(name, func(p *corev1.Pod) { p.Spec.NodeName = name }), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		names = append(names, name)
	}
	a.heard()                            // the recorder holds a thousand events, and then waits
	a.Hold("", controllerUser, lensUser) // so that nothing that is written now is seen
	time.Sleep(time.Second)
	plain := fixture.MachineDeployment(fmt.Sprint("other-", round), 1)
	other, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(ctx, &api.MachineDeployment{ObjectMeta: plain.ObjectMeta}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	a.taint.ObserveUpdate(context.Background(), other)
	for _, name := range names {
		_, ended, err := a.taint.Guards().Remove(fixture.Namespace, name)
		if err == nil {
			ended(nil)
		}
	}
	_, err = a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Patch(ctx, "pool-1", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, 3), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
	held := a.taint.Remembered()
	for _, name := range names {
		Expect(a.core.CoreV1().Pods(fixture.Namespace).Delete(ctx, name, delete)).To(Succeed())
		Expect(a.core.CoreV1().Nodes().Delete(ctx, name, delete)).To(Succeed())
		Expect(a.stock.MachineV1alpha1().Machines(fixture.Namespace).Delete(ctx, name, delete)).To(Succeed())
	}
	Expect(a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Delete(ctx, other.Name, delete)).To(Succeed())
	a.Release("", controllerUser, lensUser)
	time.Sleep(time.Minute)
	return held
}
