// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/app"
	manager "github.com/evenkeel/evenkeel/cmd/machine-controller-manager/app"
	"github.com/evenkeel/evenkeel/internal/settings"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// publish has a manager with these flags publish them.
func (s scene) publish(arguments ...string) {
	GinkgoHelper()
	s.publishIn(fixture.Namespace, arguments...)
}

func (s scene) publishIn(namespace string, arguments ...string) {
	GinkgoHelper()
	flags := manager.NewOptions().Flags()
	Expect(flags.Parse(arguments)).To(Succeed())
	config, err := settings.Publication(namespace, "me", "v0.1.0", flags)
	Expect(err).NotTo(HaveOccurred())
	_, err = kubernetes.NewForConfigOrDie(s.ConfigFor("writer")).CoreV1().ConfigMaps(namespace).Create(context.Background(), config, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (s scene) unpublish() error {
	return kubernetes.NewForConfigOrDie(s.ConfigFor("writer")).CoreV1().ConfigMaps(fixture.Namespace).Delete(context.Background(), settings.ConfigMap, metav1.DeleteOptions{})
}

var _ = Describe("The settings of the manager", func() {
	It("are adopted by plan, with the same defaults", func() {
		plan, flags := app.PlanSettings(), manager.NewOptions().Flags()
		for _, name := range settings.Names() {
			ours := plan.Lookup(name)
			Expect(ours).NotTo(BeNil(), name)
			if name != "pool-label" { // none means the manager's default
				Expect(ours.DefValue).To(Equal(flags.Lookup(name).DefValue), name)
			}
			Expect(strings.TrimRight(ours.Value.Type(), "326")).To(Equal(strings.TrimRight(flags.Lookup(name).Value.Type(), "326")), name)
		}
	})

	It("are used by plan, unless a flag overrides them; without them, it continues", func() {
		s := newScene(everything)
		s.pool("pool")
		before, err := s.answer("", "plan")
		Expect(err).NotTo(HaveOccurred())
		s.publish("--balance-mode=nonsense")
		_, err = s.answer("", "plan")
		Expect(err).To(MatchError(ContainSubstring("nonsense")), "what the manager has counts")
		Expect(s.answer("", "plan", "--balance-mode=Off")).To(Equal(before))
		Expect(s.written()).To(BeZero())
	})

	It("are outdated if their process does not lead, whichever lease it would hold", func() {
		s := newScene(everything)
		s.pool("pool")
		s.publish() // by me
		leases := kubernetes.NewForConfigOrDie(s.ConfigFor("writer")).CoordinationV1().Leases(fixture.Namespace)
		hold := func(name, holder string) {
			GinkgoHelper()
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
			_, err := leases.Create(context.Background(), lease, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		hold("machine-controller-manager", "stock")
		Expect(s.answer("", "plan")).To(ContainSubstring("Note: the settings are of me, but stock leads"))
		hold("evenkeel", "me")
		Expect(s.answer("", "plan")).NotTo(ContainSubstring("the settings are of"))
	})

	It("that let machines boot for longer, or not as long, decide whether status complains", func() {
		s := newScene(everything)
		s.pool("pool")
		_, err := s.clusters.Control.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "pool-waits", types.MergePatchType,
			[]byte(`{"status":{"currentStatus":{"phase":"Pending"}}}`), metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
		const booting = "pool-waits in reserve does not become ready"
		Expect(s.answer("", "status", "-o", "json")).NotTo(ContainSubstring(booting))
		s.publish("--reserve-boot-patience=1ns")
		Expect(s.answer("", "status", "-o", "json")).To(ContainSubstring(booting))
		Expect(s.unpublish()).To(Succeed())
		s.publish("--reserve-boot-patience=0s")
		Expect(s.answer("", "status", "-o", "json")).NotTo(ContainSubstring(booting), "there is no limit")
	})

	It("that give up all reserves let status and explain desire none, and plan expect none", func() {
		s := newScene(everything)
		s.pool("pool")
		Expect(s.answer("", "status", "-o", "json")).To(ContainSubstring(`"excess": 1`))
		s.publish("--drain-reserve")
		Expect(s.answer("", "status", "-o", "json")).To(ContainSubstring(`"excess": 0`))
		Expect(s.answer("", "explain", "mcd/pool")).To(ContainSubstring("No reserve is desired: the manager runs with --drain-reserve"))
		Expect(s.answer("", "plan")).To(And(ContainSubstring("1 of 1 machines serve, 0 in reserve"), ContainSubstring("leave:      pool-waits")))
		Expect(s.answer("", "plan", "--drain-reserve=false")).To(ContainSubstring("Nothing changes."))
	})

	It("that count reserves within replicas let plan do so", func() {
		s := newScene(everything)
		s.pool("pool")
		s.publish("--reserve-accounting=inclusive")
		Expect(s.answer("", "plan")).To(ContainSubstring("replicas 1 -> 2 (replicas include the reserve)"))
		Expect(s.answer("", "plan", "--reserve-accounting=additive")).To(ContainSubstring("Nothing changes."))
	})

	It("decide which MachineDeployments status shows as a pool", func() {
		s := newScene(everything)
		s.pool("worker-z1")
		s.pool("worker-z2")
		core := kubernetes.NewForConfigOrDie(s.ConfigFor("writer")).CoreV1()
		for _, name := range []string{"worker-z2-serves", "worker-z2-waits"} {
			_, err := core.Nodes().Patch(context.Background(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"cloud/zone-id":"2"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(s.answer("", "status")).To(ContainSubstring(" 2 pools "))
		s.publish("--balancing-ignore-label=cloud/zone-id")
		Expect(s.answer("", "status", "-A")).To(ContainSubstring(" 1 pool "))
		s.publishIn("other", "--balancing-ignore-label=cloud/zone-id")
		Expect(s.answer("", "status")).To(ContainSubstring(" 1 pool "))
		Expect(s.answer("", "status", "-A")).To(ContainSubstring(" 2 pools "), "of several managers, none counts")
		Expect(s.written()).To(BeZero())
	})
})

var _ = Describe("A page or a screen that stays open", func() {
	It("shows the flags of a manager that has started anew, and keeps the last ones while they cannot be read", func() {
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(os.WriteFile(path, []byte(kubeconfig), 0o600)).To(Succeed())
		storm.Bubble(suite, func() {
			s := scene{Server: sim.New(sim.Options{Resources: everything})}
			defer s.Close()
			ctx, cancel := context.WithCancel(context.Background())
			s.publish()
			draining, wait := app.FollowDraining(ctx, path, s.ConfigFor("plugin"), fixture.Namespace)
			defer wait()
			defer cancel()
			Expect(draining()).To(BeFalse())
			configs := kubernetes.NewForConfigOrDie(s.ConfigFor("writer")).CoreV1().ConfigMaps(fixture.Namespace)
			Expect(configs.Delete(ctx, "evenkeel-settings", metav1.DeleteOptions{})).To(Succeed())
			s.publish("--drain-reserve")
			time.Sleep(2 * time.Minute)
			Expect(draining()).To(BeTrue())
			s.Down(true, "plugin")
			time.Sleep(2 * time.Minute)
			Expect(draining()).To(BeTrue(), "nothing says otherwise")
		})
	})
})
