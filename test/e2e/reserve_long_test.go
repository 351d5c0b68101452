// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// bounds are min:max:excess.
func bounds(text string) func(*machine.MachineDeployment) {
	return func(md *machine.MachineDeployment) {
		md.Annotations = map[string]string{machine.BoundsAnnotation: text}
	}
}

var _ = Describe("In the long run, a reserve", Label("long", "ours"), func() {
	It("lasts through a rolling update that moves each pod once, whatever excess is requested meanwhile", func(ctx context.Context) {
		p := newPool(ctx, "reserve-rolled", 6, excess(2))
		p.rests(ctx, 6, 2, "Complete")
		p.work(ctx, 6)
		w := p.witness(ctx)
		p.newClass(ctx, "reserve-rolled-2")
		p.patch(ctx, `{"spec":{"template":{"spec":{"class":{"name":"reserve-rolled-2"}}}}}`)
		sleep(ctx, 30*time.Second)
		p.want(ctx, 1)
		p.restsWithin(ctx, 8*time.Minute, 6, 1, "Complete")
		Expect(p.busy(ctx)).To(ConsistOf(p.serving(ctx)))
		Expect(w.podsLost()).To(BeNumerically("<=", 6), "each pod is evicted at most once")
		Expect(w.crimes).To(BeEmpty())
		for _, m := range must(p.machines(ctx)) {
			Expect(m.Spec.Class.Name).To(Equal("reserve-rolled-2"))
		}
		for _, name := range p.reserve(ctx) {
			Expect(w.opened()).NotTo(ContainElement(name), "a machine in reserve was never open to workload")
		}
	})

	It("that cannot be created blocks nothing, is reported, and is complete again later", func(ctx context.Context) {
		p := newPool(ctx, "reserve-out", 3, excess(1), repairedAfter(10*time.Second))
		p.rests(ctx, 3, 1, "Complete")
		p.work(ctx, 3)
		setFault(ctx, "zones", p.name, "outage: true")
		p.want(ctx, 3)
		Eventually(func() (string, error) { md, err := p.deployment(ctx); return p.says(md), err }).WithContext(ctx).WithTimeout(soon).Should(Equal("CannotBeMade"))
		sick := p.serving(ctx)[0]
		setFault(ctx, "machines", sick, "dead: true")
		Eventually(func() []string { return namesOf(p.machines(ctx)) }).WithContext(ctx).WithTimeout(soon).ShouldNot(ContainElement(sick), "repair continues")
		Eventually(func() int { return len(p.busy(ctx)) }).WithContext(ctx).WithTimeout(soon).Should(Equal(3), "the reserve took its pod")
		setFault(ctx, "zones", p.name, "")
		p.restsWithin(ctx, 8*time.Minute, 3, 3, "Complete")
	})

	It("stays within the maximum of its bounds at every moment", func(ctx context.Context) {
		p := newPool(ctx, "reserve-bound", 3, bounds("1:5:2"))
		w := p.witness(ctx)
		p.rests(ctx, 3, 2, "Complete")
		p.scale(ctx, 4)
		p.rests(ctx, 4, 1, "AtMax")
		p.scale(ctx, 5)
		p.rests(ctx, 5, 0, "AtMax")
		p.scale(ctx, 3)
		p.rests(ctx, 3, 2, "Complete")
		Expect(w.largest()).To(Equal(5))
		md := must(p.deployment(ctx))
		Expect(md.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(2)))

		serving := p.serving(ctx)
		p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:"1:4:2"}}}`, machine.BoundsAnnotation))
		p.rests(ctx, 3, 1, "AtMax")
		Expect(p.serving(ctx)).To(ConsistOf(serving), "a machine in reserve went")
		p.scale(ctx, 7)
		p.rests(ctx, 7, 0, "AboveMax")

		_, err := machines.MachineV1alpha1().MachineDeployments(namespace).Patch(ctx, p.name, types.MergePatchType,
			[]byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:"lots"}}}`, machine.BoundsAnnotation)), metav1.PatchOptions{})
		Expect(err).To(MatchError(ContainSubstring("min:max:excess")), "refused at the door")
	})

	It("is never open to workload while its nodes register", func(ctx context.Context) {
		p := newPool(ctx, "reserve-registered", 1, excess(0))
		p.rests(ctx, 1, 0, "")
		w := p.witness(ctx)
		opened := w.opened()
		p.want(ctx, 50)
		p.restsWithin(ctx, 5*time.Minute, 1, 50, "Complete")
		Expect(w.opened()).To(Equal(opened))
		p.want(ctx, 0)
		p.restsWithin(ctx, 5*time.Minute, 1, 0, "")
		Expect(w.opened()).To(Equal(opened))
	})

	It("is closed within moments where a provider does not taint nodes at registration", func(ctx context.Context) {
		p := newPool(ctx, "reserve-bare", 1)
		p.rests(ctx, 1, 0, "")
		class := must(machines.MachineV1alpha1().MachineClasses(namespace).Get(ctx, p.name, metav1.GetOptions{}))
		class.ProviderSpec.Raw = []byte(strings.Replace(string(class.ProviderSpec.Raw), `{`, `{"taintsAtRegistration":false,`, 1))
		must(machines.MachineV1alpha1().MachineClasses(namespace).Update(ctx, class, metav1.UpdateOptions{}))
		windows := watchWindows(ctx, p)
		p.want(ctx, 10)
		p.restsWithin(ctx, 3*time.Minute, 1, 10, "Complete")
		all := windows()
		Expect(all).To(HaveLen(10))
		AddReportEntry("from a node's registration to its taint", ReportEntryVisibilityAlways,
			fmt.Sprintf("median %v, at most %v", all[len(all)/2], all[len(all)-1]))
	})
})

func (p pool) restsWithin(ctx context.Context, d time.Duration, serving, reserve int, reason string) {
	GinkgoHelper()
	Eventually(func() error { return p.resting(ctx, serving, reserve, reason) }).WithContext(ctx).WithTimeout(d).Should(Succeed())
}

// watchWindows returns how long each Node that registers from now on was open before it was held, sorted.
func watchWindows(ctx context.Context, p pool) func() []time.Duration {
	GinkgoHelper()
	list := must(kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{}))
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	w := must(kube.CoreV1().Nodes().Watch(life, metav1.ListOptions{ResourceVersion: list.ResourceVersion}))
	opened, windows, done := map[string]time.Time{}, map[string]time.Duration{}, make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			n, ok := event.Object.(*corev1.Node)
			if !ok || n.Labels[corev1.LabelTopologyZone] != p.name {
				continue
			}
			since, known := opened[n.Name]
			_, closed := windows[n.Name]
			switch {
			case !known:
				opened[n.Name] = time.Now()
				if holds(n) {
					windows[n.Name] = 0
				}
			case !closed && holds(n):
				windows[n.Name] = time.Since(since)
			}
		}
	}()
	DeferCleanup(func() { end(); w.Stop(); <-done })
	return func() (all []time.Duration) {
		end()
		w.Stop()
		<-done
		for _, window := range windows {
			all = append(all, window.Round(100*time.Microsecond))
		}
		slices.Sort(all)
		return all
	}
}
