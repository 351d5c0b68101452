// SPDX-License-Identifier: Apache-2.0

package still_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
)

func TestStill(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Still")
}

func pods(names ...string) (all []*corev1.Pod) {
	for _, name := range names {
		all = append(all, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}})
	}
	return all
}

var _ = Describe("What is still", func() {
	It("has a clock that stands", func() {
		c, noon := &still.Clock{}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		c.Set(noon)
		Expect(c.Now()).To(Equal(noon))
		Expect(c.Since(noon.Add(-time.Hour))).To(Equal(time.Hour))
	})

	It("shows what it was given, and then no more of it", func() {
		informer, err := still.NewInformer(pods("a", "b"), cache.Indexers{"first": func(item any) ([]string, error) { return []string{item.(*corev1.Pod).Name[:1]}, nil }})
		Expect(err).NotTo(HaveOccurred())
		Expect(informer.HasSynced()).To(BeTrue())
		Expect(informer.GetStore().ListKeys()).To(ConsistOf("n/a", "n/b"))
		Expect(informer.GetIndexer().ByIndex("first", "a")).To(ConsistOf(HaveField("Name", "a")))
		Expect(still.Replace(informer.GetStore(), pods("c"))).To(Succeed())
		Expect(informer.GetStore().ListKeys()).To(ConsistOf("n/c"))
		Expect(informer.GetIndexer().ByIndex("first", "a")).To(BeEmpty())
	})

	It("never fills where it was given nothing", func() {
		Expect(still.Informer{}.HasSynced()).To(BeFalse())
		Expect(still.EndedContext().Err()).To(HaveOccurred())
	})

	It("merges as an API server does", func() {
		before, after := &corev1.Pod{}, &corev1.Pod{}
		before.Labels = map[string]string{"a": "1", "b": "2"}
		Expect(still.Merge(before, []byte(`{"metadata":{"labels":{"a":null,"c":"3"}}}`), after)).To(Succeed())
		Expect(after.Labels).To(Equal(map[string]string{"b": "2", "c": "3"}))
		Expect(before.Labels).To(HaveKey("a"))
		Expect(still.Merge(before, []byte(`{`), after)).To(MatchError(ContainSubstring("merge: ")))
	})
})
