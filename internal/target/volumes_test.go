// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var suite *testing.T

func TestTarget(t *testing.T) {
	suite = t
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

	It("find no class once the right to read drivers is withdrawn", func() {
		storm.Bubble(suite, func() {
			core := fake.NewClientset(&storagev1.StorageClass{ObjectMeta: named("late")}, &storagev1.CSIDriver{ObjectMeta: named("csi.example")})
			var withdrawn atomic.Bool
			core.PrependWatchReactor("csidrivers", func(clienttesting.Action) (bool, watch.Interface, error) {
				if withdrawn.Load() {
					return true, nil, apierrors.NewForbidden(storagev1.Resource("csidrivers"), "", errors.New("no rule"))
				}
				w := watch.NewFake()
				time.AfterFunc(time.Minute, w.Stop) // as the process ends each watch
				return true, w, nil
			})
			i := target.New(core, nil)
			s := i.Storage()
			ctx, stop := context.WithCancel(context.Background())
			defer i.Shutdown()
			defer stop()
			i.Start(ctx)
			synctest.Wait()
			Expect(s.Lookups().Class("late")).NotTo(BeNil())
			withdrawn.Store(true)
			time.Sleep(2 * time.Minute)
			Expect(s.Lookups().Class("late")).To(BeNil())
		})
	})
})

// large is data that any user may write to an object and that no controller reads.
func large(name string, annotations ...string) metav1.ObjectMeta {
	text := strings.Repeat("x", 256<<10)
	m := metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{"a": text}, Labels: map[string]string{"a": text}, Finalizers: []string{text}}
	for _, key := range annotations {
		m.Annotations[key] = text
	}
	return m
}

func claim(change func(*corev1.PersistentVolumeClaim), annotations ...string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: large("data", annotations...), Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "disk", StorageClassName: ptr.To("late")}}
	change(c)
	return c
}

// lookups find a claim, and one volume, class and driver.
func lookups(c *corev1.PersistentVolumeClaim, strip func(any) any) *fit.Lookups {
	pv := &corev1.PersistentVolume{ObjectMeta: large("disk")}
	pv.Labels[corev1.LabelTopologyZone] = "a"
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpExists}}}}}}
	class := &storagev1.StorageClass{ObjectMeta: large("late"), Provisioner: "csi", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer), AllowedTopologies: []corev1.TopologySelectorTerm{{
		MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{"a"}}}}}, Parameters: map[string]string{"a": "b"}}
	driver := &storagev1.CSIDriver{ObjectMeta: large("csi"), Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(c.Namespace == "capacity")}}
	return &fit.Lookups{
		Claim:  func(string, string) *corev1.PersistentVolumeClaim { return strip(c).(*corev1.PersistentVolumeClaim) },
		Volume: func(string) *corev1.PersistentVolume { return strip(pv).(*corev1.PersistentVolume) },
		Class:  func(string) *storagev1.StorageClass { return strip(class).(*storagev1.StorageClass) },
		Driver: func(string) *storagev1.CSIDriver { return strip(driver).(*storagev1.CSIDriver) },
	}
}

func stripped(o any) any {
	slim, err := target.Strip(o)
	Expect(err).NotTo(HaveOccurred())
	Expect(slim.(interface{ Size() int }).Size()).To(BeNumerically("<", 1000))
	return slim
}

var _ = DescribeTable("A claim means the same when it is stripped",
	func(c *corev1.PersistentVolumeClaim) {
		p := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}}
		whole, slim := fit.NewPod(p, lookups(c, func(o any) any { return o })), fit.NewPod(p, lookups(c, stripped))
		Expect(slim.Unclear).To(Equal(whole.Unclear))
		Expect(slim.Shape()).To(Equal(whole.Shape()))
		for _, zone := range []string{"a", "b", ""} {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
			Expect(fit.Suits(slim, n)).To(Equal(fit.Suits(whole, n)), zone)
		}
	},
	Entry("bound", claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })),
	Entry("bound, by its annotation", claim(func(*corev1.PersistentVolumeClaim) {}, "pv.kubernetes.io/bind-completed")),
	Entry("half bound", claim(func(*corev1.PersistentVolumeClaim) {})),
	Entry("going", claim(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(metav1.Now()) })),
	Entry("for one pod alone", claim(func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
	})),
	Entry("made where its pod goes", claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" })),
	Entry("being made for a node", claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" }, "volume.kubernetes.io/selected-node")),
	Entry("by a driver that needs room in storage", claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName, c.Namespace = "", "capacity" })),
	Entry("of a volume whose name is none", claim(func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Status.Phase = strings.Repeat("x", 254), corev1.ClaimBound
	})),
)
