// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/test/fixture"
)

func version(u interface{ GetResourceVersion() string }) int {
	GinkgoHelper()
	n, err := strconv.Atoi(u.GetResourceVersion())
	Expect(err).NotTo(HaveOccurred())
	return n
}

func (c *cluster) versions() {
	c.versionChanges()
	c.versionConflicts()
}

// versionChanges specifies when versions increase.
func (c *cluster) versionChanges() {
	It("grow with each change, over all kinds", func() {
		first := c.configMap()
		second := c.machine()
		Expect(version(second)).To(BeNumerically(">", version(first)))
		third, err := c.of(configMaps).Update(ctx, set(first, "2", "data", "a"), update)
		Expect(err).NotTo(HaveOccurred())
		Expect(version(third)).To(BeNumerically(">", version(second)))
		list, err := c.of(machines).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(version(list)).To(BeNumerically(">=", version(third)))
	})

	It("stay where a write changes nothing", func() {
		for _, u := range []*unstructured.Unstructured{c.configMap(), c.machine()} {
			gvr := configMaps
			if u.GetKind() == "Machine" {
				gvr = machines
			}
			again, err := c.of(gvr).Update(ctx, u, update)
			Expect(err).NotTo(HaveOccurred())
			Expect(again.GetResourceVersion()).To(Equal(u.GetResourceVersion()))
			again, err = c.of(gvr).Patch(ctx, u.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"absent":null}}}`), patch)
			Expect(err).NotTo(HaveOccurred())
			Expect(again.GetResourceVersion()).To(Equal(u.GetResourceVersion()))
		}
	})

	It("have no effect where a write is only tried", func() {
		u := c.configMap()
		tried, err := c.of(configMaps).Update(ctx, set(u, "2", "data", "a"), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		Expect(err).NotTo(HaveOccurred())
		Expect(field(tried, "data", "a")).To(Equal("2"))
		Expect(c.of(configMaps).Delete(ctx, u.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})).To(Succeed())
		stored, err := c.of(configMaps).Get(ctx, u.GetName(), get)
		Expect(err).NotTo(HaveOccurred())
		Expect(stored).To(Equal(u))
	})
}

// versionConflicts specifies which versions a write must state.
func (c *cluster) versionConflicts() {
	It("refuse a change of another version than the stored one", func() {
		for gvr, u := range map[string]*unstructured.Unstructured{"configmaps": c.configMap(), "machines": c.machine()} {
			resource := machines
			if gvr == "configmaps" {
				resource = configMaps
			}
			u.SetLabels(map[string]string{"step": "1"})
			newer, err := c.of(resource).Update(ctx, u, update)
			Expect(err).NotTo(HaveOccurred())
			_, err = c.of(resource).Update(ctx, u, update)
			Expect(err).To(Satisfy(apierrors.IsConflict))
			stale := []byte(`{"metadata":{"resourceVersion":"` + u.GetResourceVersion() + `","labels":{"step":"2"}}}`)
			_, err = c.of(resource).Patch(ctx, u.GetName(), types.MergePatchType, stale, patch)
			Expect(err).To(Satisfy(apierrors.IsConflict))
			fresh := []byte(`{"metadata":{"resourceVersion":"` + newer.GetResourceVersion() + `","labels":{"step":"2"}}}`)
			_, err = c.of(resource).Patch(ctx, u.GetName(), types.MergePatchType, fresh, patch)
			Expect(err).NotTo(HaveOccurred())
		}
	})

	It("are needed for an update of some kinds and not of others", func() {
		u := c.configMap()
		u.SetResourceVersion("")
		_, err := c.of(configMaps).Update(ctx, set(u, "2", "data", "a"), update)
		Expect(err).NotTo(HaveOccurred())
		m := c.machine()
		m.SetResourceVersion("")
		_, err = c.of(machines).Update(ctx, m, update)
		Expect(err).To(Satisfy(apierrors.IsInvalid))
	})

	It("guard leases, whose times keep their microseconds", func() {
		now := metav1.NewMicroTime(time.Date(2030, 1, 2, 3, 4, 5, 678901000, time.UTC))
		leases := c.core.CoordinationV1().Leases(fixture.Namespace)
		lease, err := leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &now},
		}, create)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(leases.Delete(ctx, lease.Name, metav1.DeleteOptions{})).To(Succeed()) })
		Expect(lease.Spec.RenewTime.Time).To(BeTemporally("==", now.Time))
		stale := lease.DeepCopy()
		lease.Spec.LeaseTransitions = new(int32)
		_, err = leases.Update(ctx, lease, update)
		Expect(err).NotTo(HaveOccurred())
		_, err = leases.Update(ctx, stale, update)
		Expect(err).To(Satisfy(apierrors.IsConflict))
		stale.ResourceVersion = ""
		_, err = leases.Update(ctx, stale, update)
		Expect(err).To(Satisfy(apierrors.IsInvalid))
	})
}

func (c *cluster) names() {
	c.namesInRequests()
	c.identities()
}

// namesInRequests specifies which names a request may state.
func (c *cluster) namesInRequests() {
	It("are taken once", func() {
		u := c.machine()
		twin := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": "Machine"}}
		twin.SetName(u.GetName())
		_, err := c.of(machines).Create(ctx, twin, create)
		Expect(err).To(Satisfy(apierrors.IsAlreadyExists))
	})

	It("must exist to be changed or deleted", func() {
		u := c.machine()
		u.SetName("conformance-absent")
		_, err := c.of(machines).Get(ctx, u.GetName(), get)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
		_, err = c.of(machines).Update(ctx, u, update)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
		_, err = c.of(machines).Patch(ctx, u.GetName(), types.MergePatchType, []byte(`{}`), patch)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
		Expect(c.of(machines).Delete(ctx, u.GetName(), metav1.DeleteOptions{})).To(Satisfy(apierrors.IsNotFound))
	})

	It("must be there and well formed", func() {
		for _, m := range []metav1.ObjectMeta{{}, {Name: "No_Name"}, {GenerateName: "x-", Labels: map[string]string{"a b": "c"}}} {
			m.Namespace = fixture.Namespace
			_, err := c.core.CoreV1().ConfigMaps(fixture.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: m}, create)
			Expect(err).To(Satisfy(apierrors.IsInvalid), "%+v", m)
		}
	})

	It("agree with the address", func() {
		u := c.configMap()
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conformance-other", ResourceVersion: u.GetResourceVersion()}}
		err := c.core.CoreV1().RESTClient().Put().Namespace(fixture.Namespace).Resource("configmaps").Name(u.GetName()).Body(other).Do(ctx).Error()
		Expect(err).To(Satisfy(apierrors.IsBadRequest))
		other.Namespace = "elsewhere"
		_, err = c.core.CoreV1().ConfigMaps(fixture.Namespace).Create(ctx, other, create)
		Expect(err).To(Satisfy(apierrors.IsBadRequest))
	})
}

// identities specifies what the server sets on an object, and what clients cannot change.
func (c *cluster) identities() {
	It("are completed by the server, which also stamps the object", func() {
		before := time.Now().Add(-2 * time.Second)
		m := fixture.Machine("")
		m.GenerateName, m.UID, m.Generation = "conformance-", "mine", 7
		m.CreationTimestamp = metav1.NewTime(time.Unix(0, 0))
		u := c.createGenerated(machines, m)
		Expect(u.GetName()).To(MatchRegexp("^conformance-[a-z0-9]{5}$"))
		Expect(string(u.GetUID())).To(MatchRegexp("^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"))
		Expect(u.GetCreationTimestamp().Time).To(BeTemporally("~", before, time.Minute))
		Expect(u.GetGeneration()).To(BeEquivalentTo(1))
		born := u.GetCreationTimestamp()
		u.SetCreationTimestamp(metav1.NewTime(time.Unix(0, 0)))
		u.SetLabels(map[string]string{"a": "b"})
		u, err := c.of(machines).Update(ctx, u, update)
		Expect(err).NotTo(HaveOccurred())
		Expect(u.GetCreationTimestamp()).To(Equal(born))
	})

	It("do not hide that the object is another one of the same name", func() {
		u := c.machine()
		u.SetUID("00000000-0000-4000-8000-000000000000")
		_, err := c.of(machines).Update(ctx, u, update)
		Expect(err).To(Satisfy(apierrors.IsConflict))
		adopt := []byte(`{"metadata":{"uid":"00000000-0000-4000-8000-000000000000","labels":{"a":"b"}}}`)
		_, err = c.of(machines).Patch(ctx, u.GetName(), types.MergePatchType, adopt, patch)
		Expect(err).To(Or(Satisfy(apierrors.IsInvalid), Satisfy(apierrors.IsConflict)))
	})

	It("are not created with a resourceVersion", func() {
		m := fixture.Machine("")
		m.GenerateName, m.ResourceVersion = "conformance-", "1"
		_, err := c.machines.MachineV1alpha1().Machines(fixture.Namespace).Create(ctx, m, create)
		Expect(err).To(MatchError(ContainSubstring("resourceVersion should not be set on objects to be created")))
	})
}
