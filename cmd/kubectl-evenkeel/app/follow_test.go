// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/app"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

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
