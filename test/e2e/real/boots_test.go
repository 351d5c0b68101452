// SPDX-License-Identifier: Apache-2.0

package real

import (
	"context"
	"errors"
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	// bootRounds of bootsEach machines boot while waitingPods wait that fit nothing else.
	bootRounds, bootsEach = 20, 10
	waitingPods           = 100
)

var _ = Describe("Two hundred Nodes that register while a hundred pods wait", Label("boots"), func() {
	It("get none of them, also while the manager is killed, stands still or changes its leader", func(ctx context.Context) {
		c := start(ctx, "real-e2e-boots", "mcm")
		first, provider := c.Process("machine-controller-manager"), c.Process("machine-controller")
		second, err := c.RunProgram(ctx, localcluster.Program{Name: "second", Package: "./cmd/machine-controller-manager", Flags: []string{"--controllers=mcm"}})
		Expect(err).NotTo(HaveOccurred())
		p := poolOf(c, "boots")
		p.create(ctx, 0, 0, small+`,"taintsAtRegistration":false`)
		p.work(ctx, waitingPods, tiny)
		Eventually(p.pods).WithContext(ctx).Should(HaveLen(waitingPods))
		// Each returns what ends it. The machine controller stands still, too: it would write the taint some time after the registration.
		disturb := []func() (end func() error, err error){
			func() (func() error, error) { return func() error { return nil }, nil },
			func() (func() error, error) { // no manager runs
				stopped := errors.Join(provider.Pause(), first.Kill(), second.Kill())
				return func() error { return errors.Join(first.Start(), second.Start(), provider.Resume()) }, stopped
			},
			func() (func() error, error) { // they stand still
				return func() error { return errors.Join(first.Resume(), second.Resume(), provider.Resume()) }, errors.Join(provider.Pause(), first.Pause(), second.Pause())
			},
			func() (func() error, error) { // the other one leads
				return func() error { return nil }, first.Restart()
			},
		}
		for round := range bootRounds {
			By(fmt.Sprintf("round %d", round))
			p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/bounds":"0:20:%d"}}}`, bootsEach))
			Eventually(p.machines).WithContext(ctx).WithPolling(5 * time.Millisecond).Should(HaveLen(bootsEach))
			end, err := disturb[round%len(disturb)]()
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(5 * time.Second) // kubelets boot meanwhile
			Expect(p.bound(ctx)).To(BeEmpty())
			Expect(end()).To(Succeed())
			p.rests(ctx, 0, bootsEach)
			Expect(p.bound(ctx)).To(BeEmpty())
			p.patch(ctx, `{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/bounds":"0:20:0"}}}`)
			Eventually(p.nodes).WithContext(ctx).Should(BeEmpty())
			Eventually(p.machines).WithContext(ctx).Should(BeEmpty())
		}
	}, NodeTimeout(30*time.Minute))
})

// machines are the names of the pool's Machines that have been created in their cloud: their Nodes register soon.
func (p pool) machines(ctx context.Context) (names []string, err error) {
	list, err := p.ours.MachineV1alpha1().Machines(namespace).List(ctx, metav1.ListOptions{LabelSelector: "name=" + p.name})
	if err != nil {
		return nil, err
	}
	for _, m := range list.Items {
		if m.Labels[mcm.NodeLabelKey] != "" {
			names = append(names, m.Name)
		}
	}
	return names, nil
}

// bound are the pods that have a Node, with it.
func (p pool) bound(ctx context.Context) (all []string, err error) {
	pods, err := p.pods(ctx)
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			all = append(all, pod.Name+" "+pod.Spec.NodeName)
		}
	}
	return all, err
}
