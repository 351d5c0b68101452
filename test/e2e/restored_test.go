// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

var _ = Describe("In the long run, a cluster whose etcd is restored from a backup", Label("long", "ours"), Serial, func() {
	It("makes the manager restart, which creates no machine twice and deletes none that is busy", func(ctx context.Context) {
		c := another(ctx, localcluster.Options{Name: "e2e-restored"})
		Expect(c.Apply(ctx, "kubernetes/crds", "kubernetes/policies")).To(Succeed())
		// The leases outlast that the API server is away, so that nothing but the restore ends a process.
		flags := append(slices.Clone(rates), "--v=3", "--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=45s")
		runProgram(ctx, c, localcluster.Program{Name: machineController, Flags: slices.Concat(flags, []string{"--machine-safety-orphan-vms-period=10s"})})
		runProgram(ctx, c, localcluster.Program{Name: mcm, Flags: slices.Concat(flags, []string{managerControllers})})
		moveTo(c, c)
		p := newPool(ctx, "restored", 3, excess(1))
		p.rests(ctx, 3, 1, "Complete")
		p.work(ctx, 3)
		backup := filepath.Join(GinkgoT().TempDir(), "etcd")
		Expect(c.Backup(ctx, backup)).To(Succeed())
		p.rests(ctx, 3, 1, "Complete")
		before, busy := namesOf(p.machines(ctx)), p.busy(ctx)

		By("growing after the backup, and restoring it under the running manager; the cloud stays as it is")
		p.scale(ctx, 5)
		p.want(ctx, 2)
		p.moreWork(ctx, 5)
		p.rests(ctx, 5, 2, "Complete")
		goOn(ctx)
		cloud := must(control.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: virtual.RecordLabel})).Items
		Expect(cloud).To(HaveLen(7))
		Expect(c.Process(machineController).Stop()).To(Succeed())
		Expect(c.Restore(ctx, backup)).To(Succeed())
		for _, record := range cloud {
			record.ResourceVersion, record.UID = "", ""
			_, err := control.CoreV1().ConfigMaps(namespace).Create(ctx, &record, metav1.CreateOptions{})
			Expect(err).To(Or(Succeed(), Satisfy(errors.IsAlreadyExists)))
		}
		manager := c.Process(mcm)
		Eventually(manager.Running).WithContext(ctx).WithTimeout(time.Minute).Should(BeFalse())
		Expect(os.ReadFile(manager.Log())).To(ContainSubstring(reachability.ErrRestored.Error()))
		Expect(eventsOf(ctx, "Lease", mcm)).To(ContainElement("StorageRestored"))

		By("starting it again, as a kubelet does")
		made := zones{p}.record(ctx)
		Expect(c.Process(machineController).Start()).To(Succeed())
		Expect(manager.Start()).To(Succeed())
		p.restsWithin(ctx, 4*time.Minute, 3, 1, "Complete")
		Expect(namesOf(p.machines(ctx))).To(ConsistOf(before))
		Expect(p.busy(ctx)).To(Equal(busy))
		Expect(made()).To(BeEmpty())
		p.scale(ctx, 5)
		p.moreWork(ctx, 5)
		p.rests(ctx, 5, 1, "Complete")
		Expect(made()).To(HaveLen(2))
		Expect(p.busy(ctx)).To(And(HaveLen(5), ContainElements(busy)))
		Expect(manager.Running()).To(BeTrue())
	})
})

// goOn writes for longer than the time between two probes, so that a backup of before is far behind what the manager has seen.
func goOn(ctx context.Context) {
	GinkgoHelper()
	maps := control.CoreV1().ConfigMaps(namespace)
	for end := time.Now().Add(reachability.ProbeInterval + time.Second); time.Now().Before(end); {
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "time-passes-"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}
