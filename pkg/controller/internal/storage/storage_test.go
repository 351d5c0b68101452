// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/storage"
)

func TestStorage(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Storage")
}

var _ = Describe("Lookups", func() {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

	It("find what there is, and classes only once the drivers are known", func(ctx SpecContext) {
		core := fake.NewClientset(
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}}, &corev1.PersistentVolume{ObjectMeta: named("disk")},
			&storagev1.StorageClass{ObjectMeta: named("late")}, &storagev1.CSIDriver{ObjectMeta: named("csi.example")})
		factory := informers.NewSharedInformerFactory(core, 0)
		claims, volumes := factory.Core().V1().PersistentVolumeClaims().Informer(), factory.Core().V1().PersistentVolumes().Informer()
		s := storage.Stores{Claims: claims.GetIndexer(), Volumes: volumes.GetIndexer()}
		Expect(s.Follow(factory, access.New(clock.RealClock{}))).To(Succeed())
		drivers := s.DriversKnown
		s.DriversKnown = func() bool { return false }
		l := s.Lookups()
		factory.StartWithContext(ctx)
		DeferCleanup(factory.Shutdown)
		for _, informer := range []cache.SharedIndexInformer{claims, volumes, factory.Storage().V1().StorageClasses().Informer(), factory.Storage().V1().CSIDrivers().Informer()} {
			Expect(cache.WaitFor(ctx, "", informer.HasSyncedChecker())).To(BeTrue())
		}
		Expect(drivers()).To(BeTrue())

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
