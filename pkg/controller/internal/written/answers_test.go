// SPDX-License-Identifier: Apache-2.0

package written_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/controller/internal/written"
)

var _ = Describe("The answers to writes", func() {
	at := func(version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID("one"), ResourceVersion: version}}
	}

	It("are taken where the cache is behind, and given up once it is not", func() {
		var a written.Answers[*corev1.Node]
		Expect(a.Newest(at("9")).ResourceVersion).To(Equal("9"))
		a.Note(at("10"))
		Expect(a.Newest(at("9")).ResourceVersion).To(Equal("10"))
		Expect(a.Newest(at("9")).ResourceVersion).To(Equal("10"))
		Expect(a.Newest(at("100")).ResourceVersion).To(Equal("100"))
		Expect(a.Newest(at("9")).ResourceVersion).To(Equal("9"))
	})

	It("are the later of two, in whatever order they come", func() {
		var a written.Answers[*corev1.Node]
		a.Note(at("12"))
		a.Note(at("10"))
		Expect(a.Newest(at("9")).ResourceVersion).To(Equal("12"))
		a.Note(at("13"))
		Expect(a.Newest(at("9")).ResourceVersion).To(Equal("13"))
	})

	It("say nothing of an object that is gone, or that was made anew", func() {
		var a written.Answers[*corev1.Node]
		a.Note(at("10"))
		a.Forget(at("9"))
		Expect(a.Newest(at("9")).ResourceVersion).To(Equal("9"))
		a.Note(at("10"))
		again := at("9")
		again.UID = "two"
		Expect(a.Newest(again)).To(BeIdenticalTo(again))
	})

	It("are not kept beside a version that cannot be compared", func() {
		var a written.Answers[*corev1.Node]
		a.Note(at("10"))
		Expect(a.Newest(at("x")).ResourceVersion).To(Equal("x"))
	})
})
