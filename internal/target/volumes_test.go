// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/target"
)

func TestTarget(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Target")
}

var _ = Describe("Lookups", func() {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

	It("find what there is, and classes only once the drivers are known", func(ctx SpecContext) {
		core := fake.NewClientset(
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}}, &corev1.PersistentVolume{ObjectMeta: named("disk")},
			&storagev1.StorageClass{ObjectMeta: named("late")}, &storagev1.CSIDriver{ObjectMeta: named("csi.example")})
		i := target.New(core, nil)
		s := i.Storage()
		drivers := s.DriversKnown
		s.DriversKnown = func() bool { return false }
		l := s.Lookups()
		i.Start(ctx)
		DeferCleanup(i.Shutdown)
		Expect(cache.WaitFor(ctx, "", i.Claims().HasSyncedChecker(), i.Volumes().HasSyncedChecker())).To(BeTrue())
		Eventually(ctx, drivers).Should(BeTrue())
		Eventually(ctx, s.Classes.ListKeys).Should(ConsistOf("late"))

		Expect(l.Claim("default", "data")).NotTo(BeNil())
		Expect(l.Claim("other", "data")).To(BeNil())
		Expect(l.Volume("disk")).NotTo(BeNil())
		Expect(l.Driver("csi.example")).NotTo(BeNil())
		Expect(l.Class("late")).To(BeNil())
		s.DriversKnown = drivers
		Expect(l.Class("late")).NotTo(BeNil())
		Expect(l.Class("early")).To(BeNil())
	})
})
