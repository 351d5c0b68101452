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
	// bootRounds of bootsEach machines boot in each entry while waitingPods wait that fit nothing else.
	bootRounds, bootsEach = 5, 10
	waitingPods           = 100
)

// fleet is a cluster's two managers, and the machine controller, which would write the taint some time after the
// registration.
type fleet struct{ first, second, provider *localcluster.Process }

var _ = DescribeTable("Nodes that register while a hundred pods wait get none of them", Label("boots"), func(ctx context.Context, disturb func(fleet) error, end func(fleet) error) {
	c := start(ctx, "real-e2e-boots", "mcm")
	second, err := c.RunProgram(ctx, localcluster.Program{Name: "second", Package: "./cmd/machine-controller-manager", Flags: []string{"--controllers=mcm"}})
	Expect(err).NotTo(HaveOccurred())
	f := fleet{c.Process("machine-controller-manager"), second, c.Process("machine-controller")}
	p := poolOf(c, "boots")
	p.create(ctx, 0, 0, small+`,"taintsAtRegistration":false`)
	p.work(ctx, waitingPods, tiny)
	Eventually(p.pods).WithContext(ctx).Should(HaveLen(waitingPods))
	for round := range bootRounds {
		By(fmt.Sprintf("round %d", round))
		p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/bounds":"0:20:%d"}}}`, bootsEach))
		Eventually(p.machines).WithContext(ctx).WithPolling(5 * time.Millisecond).Should(HaveLen(bootsEach))
		Expect(disturb(f)).To(Succeed())
		time.Sleep(5 * time.Second) // kubelets boot meanwhile
		Expect(p.bound(ctx)).To(BeEmpty())
		Expect(end(f)).To(Succeed())
		p.rests(ctx, 0, bootsEach)
		Expect(p.bound(ctx)).To(BeEmpty())
		p.patch(ctx, `{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/bounds":"0:20:0"}}}`)
		Eventually(p.nodes).WithContext(ctx).Should(BeEmpty())
		Eventually(p.machines).WithContext(ctx).Should(BeEmpty())
	}
},
	Entry("while the manager runs", NodeTimeout(15*time.Minute), undisturbed, undisturbed),
	Entry("while no manager runs", NodeTimeout(15*time.Minute),
		func(f fleet) error { return errors.Join(f.provider.Pause(), f.first.Kill(), f.second.Kill()) },
		func(f fleet) error { return errors.Join(f.first.Start(), f.second.Start(), f.provider.Resume()) }),
	Entry("while the manager stands still", NodeTimeout(15*time.Minute),
		func(f fleet) error { return errors.Join(f.provider.Pause(), f.first.Pause(), f.second.Pause()) },
		func(f fleet) error { return errors.Join(f.first.Resume(), f.second.Resume(), f.provider.Resume()) }),
	Entry("while the manager changes its leader", NodeTimeout(15*time.Minute), func(f fleet) error { return f.first.Restart() }, undisturbed),
)

func undisturbed(fleet) error { return nil }

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
