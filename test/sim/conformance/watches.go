// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/test/fixture"
)

// stream is a watch under test.
type stream struct{ watch.Interface }

func (c *cluster) watch(gvr schema.GroupVersionResource, options metav1.ListOptions) stream {
	GinkgoHelper()
	w, err := c.of(gvr).Watch(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	return stream{w}
}

// next returns the next event, and its object.
func (s stream) next() (watch.EventType, *unstructured.Unstructured) {
	GinkgoHelper()
	select {
	case e, ok := <-s.ResultChan():
		if !ok {
			return "", nil
		}
		u, ok := e.Object.(*unstructured.Unstructured)
		Expect(ok).To(BeTrue(), "%T", e.Object)
		return e.Type, u
	case <-time.After(patience):
		Fail("no event")
		return "", nil
	}
}

func (s stream) expect(want watch.EventType, object *unstructured.Unstructured) {
	GinkgoHelper()
	got, u := s.next()
	Expect(got).To(Equal(want))
	Expect(u.GetName()).To(Equal(object.GetName()))
	Expect(u.GetResourceVersion()).To(Equal(object.GetResourceVersion()))
}

// only selects one object, so that others in a shared cluster do not interfere.
func only(u *unstructured.Unstructured) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "metadata.name=" + u.GetName(), ResourceVersion: u.GetResourceVersion()}
}

func (c *cluster) watches() {
	c.watchedChanges()
	c.watchBounds()
}

// watchedChanges specifies the events of a watch.
func (c *cluster) watchedChanges() {
	It("deliver every change after their version once, in order, and none for no-ops", func() {
		one := c.machine()
		two, err := c.of(machines).Update(ctx, set(one, "b", "metadata", "labels", "a"), update)
		Expect(err).NotTo(HaveOccurred())
		_, err = c.of(machines).Update(ctx, two, update)
		Expect(err).NotTo(HaveOccurred())
		three, err := c.of(machines).UpdateStatus(ctx, running(two), update)
		Expect(err).NotTo(HaveOccurred())
		w := c.watch(machines, only(one))
		w.expect(watch.Modified, two)
		w.expect(watch.Modified, three)
		four, err := c.of(machines).Update(ctx, set(three, "c", "metadata", "labels", "a"), update)
		Expect(err).NotTo(HaveOccurred())
		w.expect(watch.Modified, four)
		Expect(c.of(machines).Delete(ctx, one.GetName(), metav1.DeleteOptions{})).To(Succeed())
		kind, last := w.next()
		Expect(kind).To(Equal(watch.Deleted))
		Expect(version(last)).To(BeNumerically(">", version(four)))
		Expect(field(last, "metadata", "labels", "a")).To(Equal("c"))
	})

	It("end with the deletion when the last finalizer is removed, without another change before", func() {
		u := c.makeDeleting()
		w := c.watch(machines, only(u))
		u.SetFinalizers(nil)
		_, err := c.of(machines).Update(ctx, u, update)
		Expect(err).NotTo(HaveOccurred())
		kind, last := w.next()
		Expect(kind).To(Equal(watch.Deleted))
		Expect(version(last)).To(BeNumerically(">", version(u)))
	})

	It("see through their selector: what enters is added, what leaves is deleted", func() {
		u := c.machine()
		w := c.watch(machines, metav1.ListOptions{LabelSelector: "evenkeel.dev/conformance=" + u.GetName(), ResourceVersion: u.GetResourceVersion()})
		label := func(value string) {
			GinkgoHelper()
			var err error
			u.SetLabels(map[string]string{"evenkeel.dev/conformance": value})
			u, err = c.of(machines).Update(ctx, u, update)
			Expect(err).NotTo(HaveOccurred())
		}
		label("other")
		label(u.GetName())
		w.expect(watch.Added, u)
		u, err := c.of(machines).UpdateStatus(ctx, running(u), update)
		Expect(err).NotTo(HaveOccurred())
		w.expect(watch.Modified, u)
		u.SetLabels(nil)
		u, err = c.of(machines).Update(ctx, u, update)
		Expect(err).NotTo(HaveOccurred())
		kind, last := w.next()
		Expect(kind).To(Equal(watch.Deleted))
		Expect(last.GetResourceVersion()).To(Equal(u.GetResourceVersion()))
		Expect(last.GetLabels()).To(HaveKeyWithValue("evenkeel.dev/conformance", u.GetName()), "the state that was selected")
	})
}

// watchBounds specifies where a watch begins and ends, and what it omits.
func (c *cluster) watchBounds() {
	It("begin with what is there, and say when that is complete", func() {
		u := c.machine()
		options := only(u)
		options.ResourceVersion = ""
		c.watch(machines, options).expect(watch.Added, u)
		options.SendInitialEvents = ptr.To(true)
		options.AllowWatchBookmarks = true
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		w := c.watch(machines, options)
		w.expect(watch.Added, u)
		kind, mark := w.next()
		Expect(kind).To(Equal(watch.Bookmark))
		Expect(mark.GetAnnotations()).To(HaveKeyWithValue(metav1.InitialEventsAnnotationKey, "true"))
		Expect(version(mark)).To(BeNumerically(">=", version(u)))
		u, err := c.of(machines).Update(ctx, set(u, "b", "metadata", "labels", "a"), update)
		Expect(err).NotTo(HaveOccurred())
		w.expect(watch.Modified, u)
	})

	It("end after the time they ask for", func() {
		u := c.machine()
		options := only(u)
		options.TimeoutSeconds = ptr.To[int64](1)
		kind, _ := c.watch(machines, options).next()
		Expect(kind).To(BeEmpty())
	})

	It("keep to the namespace", func() {
		u := c.configMap()
		w, err := c.any.Resource(configMaps).Namespace("kube-system").Watch(ctx, metav1.ListOptions{
			FieldSelector: "metadata.name=" + u.GetName(), TimeoutSeconds: ptr.To[int64](1),
		})
		Expect(err).NotTo(HaveOccurred())
		defer w.Stop()
		_, err = c.of(configMaps).Update(ctx, set(u, "2", "data", "a"), update)
		Expect(err).NotTo(HaveOccurred())
		kind, _ := stream{w}.next()
		Expect(kind).To(BeEmpty())
	})

	It("of one kind are not told of another", func() {
		u := c.machine()
		options := metav1.ListOptions{ResourceVersion: u.GetResourceVersion(), LabelSelector: "name=" + u.GetName()}
		w := c.watch(deployments, options)
		_, err := c.of(machines).Update(ctx, set(u, u.GetName(), "metadata", "labels", "name"), update)
		Expect(err).NotTo(HaveOccurred())
		d := fixture.MachineDeployment("conformance", 1)
		d.Labels = map[string]string{"name": u.GetName()}
		w.expect(watch.Added, c.createGenerated(deployments, d))
	})
}
