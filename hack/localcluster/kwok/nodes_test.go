// SPDX-License-Identifier: Apache-2.0

package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

func node(name, annotation string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if annotation != "" {
		n.Annotations = map[string]string{"kwok.x-k8s.io/node": annotation}
	}
	return n
}

var _ = Describe("a client that shows fake nodes only", func() {
	var (
		all   kubernetes.Interface
		shown kubernetes.Interface
	)
	BeforeEach(func() {
		all = fake.NewClientset(node("fake", "fake"), node("real", ""), node("other", "real"))
		shown = onlyFakeNodes{all}
	})

	It("lists no others", func(ctx SpecContext) {
		list, err := shown.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).To(HaveExactElements(HaveField("Name", "fake")))
	})

	It("reports a node that stops being fake as deleted, and one that becomes fake", func(ctx SpecContext) {
		watcher, err := shown.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(watcher.Stop)
		for _, next := range []*corev1.Node{node("fake", "gone"), node("real", "fake"), node("fake", "fake")} {
			_, err := all.CoreV1().Nodes().Update(ctx, next, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		_, err = all.CoreV1().Nodes().Create(ctx, node("new", ""), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(all.CoreV1().Nodes().Delete(ctx, "other", metav1.DeleteOptions{})).To(Succeed())
		Expect(all.CoreV1().Nodes().Delete(ctx, "real", metav1.DeleteOptions{})).To(Succeed())

		var seen []string
		for range 5 {
			event := <-watcher.ResultChan()
			seen = append(seen, string(event.Type)+" "+event.Object.(*corev1.Node).Name)
		}
		Expect(seen).To(HaveExactElements("ADDED fake", "DELETED fake", "MODIFIED real", "MODIFIED fake", "DELETED real"))
	})

	It("passes bookmarks on, which carry no annotations", func() {
		bookmark := watch.Event{Type: watch.Bookmark, Object: node("", "")}
		event, pass := asSelected(bookmark)
		Expect(pass).To(BeTrue())
		Expect(event).To(Equal(bookmark))
	})
})

var _ = Describe("the stages", func() {
	It("parse, one for nodes and kwok's own for pods", func() {
		config, err := parseStages(nodeReady)
		Expect(err).NotTo(HaveOccurred())
		Expect(config).To(HaveLen(1))
		_, err = parseStages("kind: Nonsense")
		Expect(err).To(HaveOccurred())
	})
})
