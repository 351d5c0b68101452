// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/evenkeel/evenkeel/test/fixture"
)

// configured returns a ConfigMap as one manager applies it.
func configured(name string, data map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"data": data}}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	u.SetName(name)
	u.SetNamespace(fixture.Namespace)
	return u
}

// unused returns a name that no object has.
func (c *cluster) unused() string {
	name := "conformance-" + string(uuid.NewUUID())[:8]
	DeferCleanup(func() { c.remove(configMaps, name) })
	return name
}

func (c *cluster) apply(manager string, force bool, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return c.of(configMaps).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: manager, Force: force})
}

func (c *cluster) applied(manager string, force bool, u *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	is, err := c.apply(manager, force, u)
	Expect(err).NotTo(HaveOccurred())
	return is
}

// owned returns the content of the managed fields, by manager, operation and subresource.
func owned(u *unstructured.Unstructured) map[string]string {
	all := map[string]string{}
	for _, f := range u.GetManagedFields() {
		Expect(f.FieldsType).To(Equal("FieldsV1"))
		Expect(f.APIVersion).To(Equal(u.GetAPIVersion()))
		all[strings.TrimSpace(f.Manager+" "+string(f.Operation)+" "+f.Subresource)] = f.FieldsV1.GetRawString()
	}
	return all
}

const onlyA, onlyB, aAndB = `{"f:data":{"f:a":{}}}`, `{"f:data":{"f:b":{}}}`, `{"f:data":{"f:a":{},"f:b":{}}}`

func (c *cluster) applies() {
	c.appliedFields()
	c.foreignFields()
	c.applyRecords()
}

// appliedFields specifies which fields an apply sets and removes.
func (c *cluster) appliedFields() {
	It("create what is not there, and record whose each field is", func() {
		name := c.unused()
		u := c.applied("one", false, configured(name, map[string]any{"a": "1", "b": "2"}))
		Expect(u.GetUID()).NotTo(BeEmpty())
		Expect(owned(u)).To(Equal(map[string]string{"one Apply": aAndB}))
	})

	It("change nothing where nothing is new", func() {
		name := c.unused()
		wish := configured(name, map[string]any{"a": "1"})
		u := c.applied("one", false, wish)
		Expect(c.applied("one", false, wish)).To(Equal(u))
	})

	It("remove what their manager leaves out, unless another owns it too", func() {
		name := c.unused()
		c.applied("one", false, configured(name, map[string]any{"a": "1", "b": "2"}))
		c.applied("two", false, configured(name, map[string]any{"b": "2"}))
		u := c.applied("one", false, configured(name, map[string]any{"a": "1"}))
		Expect(field(u, "data")).To(Equal(map[string]any{"a": "1", "b": "2"}))
		Expect(owned(u)).To(Equal(map[string]string{"one Apply": onlyA, "two Apply": onlyB}))
		u = c.applied("two", false, configured(name, nil))
		Expect(field(u, "data")).To(Equal(map[string]any{"a": "1"}))
	})
}

// foreignFields specifies what happens to fields that another manager writes.
func (c *cluster) foreignFields() {
	It("conflict over a field that another owns, and take it by force", func() {
		name := c.unused()
		before := c.applied("one", false, configured(name, map[string]any{"a": "1", "b": "2"}))
		_, err := c.apply("two", false, configured(name, map[string]any{"a": "3"}))
		Expect(err).To(Satisfy(apierrors.IsConflict))
		Expect(apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)).To(BeTrue())
		is, err := c.of(configMaps).Get(ctx, name, get)
		Expect(err).NotTo(HaveOccurred())
		Expect(is).To(Equal(before))
		u := c.applied("two", true, configured(name, map[string]any{"a": "3"}))
		Expect(field(u, "data")).To(Equal(map[string]any{"a": "3", "b": "2"}))
		Expect(owned(u)).To(Equal(map[string]string{"one Apply": onlyB, "two Apply": onlyA}))
	})

	It("lose what an update changes", func() {
		name := c.unused()
		u := c.applied("one", false, configured(name, map[string]any{"a": "1", "b": "2"}))
		u, err := c.of(configMaps).Update(ctx, set(u, "3", "data", "a"), metav1.UpdateOptions{FieldManager: "two"})
		Expect(err).NotTo(HaveOccurred())
		Expect(owned(u)).To(Equal(map[string]string{"one Apply": onlyB, "two Update": onlyA}))
		_, err = c.apply("one", false, configured(name, map[string]any{"a": "1", "b": "2"}))
		Expect(err).To(Satisfy(apierrors.IsConflict))
	})

	It("lose what an update removes, which leaves no trace", func() {
		name := c.unused()
		c.applied("one", false, configured(name, map[string]any{"a": "1", "b": "2"}))
		u, err := c.of(configMaps).Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"b":null}}`), metav1.PatchOptions{FieldManager: "two"})
		Expect(err).NotTo(HaveOccurred())
		Expect(owned(u)).To(Equal(map[string]string{"one Apply": onlyA}))
	})
}

// applyRecords specifies what an apply must contain, and what the managed fields record.
func (c *cluster) applyRecords() {
	It("need a manager, and the version and object that they name", func() {
		name := c.unused()
		_, err := c.apply("", false, configured(name, map[string]any{"a": "1"}))
		Expect(err).To(Satisfy(apierrors.IsInvalid))
		other := configured(name, map[string]any{"a": "1"})
		other.SetUID("00000000-0000-4000-8000-000000000000")
		_, err = c.apply("one", false, other)
		Expect(err).To(Satisfy(apierrors.IsConflict))
		u := c.applied("one", false, configured(name, map[string]any{"a": "1"}))
		stale := configured(name, map[string]any{"a": "2"})
		stale.SetResourceVersion(u.GetResourceVersion())
		c.applied("one", false, configured(name, map[string]any{"a": "3"}))
		_, err = c.apply("one", false, stale)
		Expect(err).To(Satisfy(apierrors.IsConflict))
	})

	It("take over fields whose record a client rewrites", func() {
		name := c.unused()
		u, err := c.of(configMaps).Create(ctx, configured(name, map[string]any{"a": "1", "b": "2"}), metav1.CreateOptions{FieldManager: "one"})
		Expect(err).NotTo(HaveOccurred())
		Expect(owned(u)).To(Equal(map[string]string{"one Update": `{"f:data":{".":{},"f:a":{},"f:b":{}}}`}))
		body := []byte(`[{"op":"replace","path":"/metadata/managedFields/0/operation","value":"Apply"}]`)
		u, err = c.of(configMaps).Patch(ctx, name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: "one"})
		Expect(err).NotTo(HaveOccurred())
		Expect(owned(u)).To(HaveKey("one Apply"))
		u = c.applied("one", false, configured(name, map[string]any{"a": "1"}))
		Expect(field(u, "data")).To(Equal(map[string]any{"a": "1"}))
	})

	It("are recorded apart from writes of the status, also for custom resources", func() {
		u := c.machine()
		_, err := c.of(machines).UpdateStatus(ctx, running(u), metav1.UpdateOptions{FieldManager: "kubelet"})
		Expect(err).NotTo(HaveOccurred())
		wish := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": "Machine"}}
		wish.SetName(u.GetName())
		wish.SetLabels(map[string]string{"a": "b"})
		u, err = c.of(machines).Apply(ctx, u.GetName(), wish, metav1.ApplyOptions{FieldManager: "one"})
		Expect(err).NotTo(HaveOccurred())
		Expect(owned(u)).To(And(
			HaveKeyWithValue("one Apply", And(HavePrefix(`{"f:metadata":{"f:labels":{`), ContainSubstring(`"f:a":{}`), Not(ContainSubstring("f:status")))),
			HaveKeyWithValue("kubelet Update status", HavePrefix(`{"f:status":`)),
		))
		wish.SetLabels(nil)
		u, err = c.of(machines).Apply(ctx, u.GetName(), wish, metav1.ApplyOptions{FieldManager: "one"})
		Expect(err).NotTo(HaveOccurred())
		Expect(u.GetLabels()).NotTo(HaveKey("a"))
		Expect(field(u, "status")).NotTo(BeNil())
	})
}
