// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"errors"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
)

var (
	errLost     = errors.New("connection reset by peer")
	errConflict = apierrors.NewConflict(mcmapi.Resource("any"), "one", errors.New("the object has been modified"))
)

var _ = Describe("A MachineSet that is shown with 4 replicas at version 8", func() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type resizes = machinetaint.Resizes

	DescribeTable("may ask for", func(writes func(*resizes), least, most int) {
		r := &resizes{}
		writes(r)
		Expect(r.Range("8", 4, now)).To(Equal([2]int{least, most}))
	},
		Entry("4 without a write", func(*resizes) {}, 4, 4),
		Entry("4 or more while it grows", func(r *resizes) { r.Begin(6) }, 4, 6),
		Entry("4 or fewer while it shrinks", func(r *resizes) { r.Begin(1) }, 1, 4),
		Entry("4 or more after it has grown", func(r *resizes) { r.Begin(6); r.End("9", nil, now) }, 4, 6),
		Entry("4 or fewer after it has shrunk", func(r *resizes) { r.Begin(1); r.End("9", nil, now) }, 1, 4),
		Entry("4 if a later version than that of the write is shown", func(r *resizes) { r.Begin(6); r.End("7", nil, now) }, 4, 4),
		Entry("4 after a conflict", func(r *resizes) { r.Begin(6); r.End("", errConflict, now) }, 4, 4),
		Entry("either while the outcome is unknown", func(r *resizes) { r.Begin(6); r.End("", errLost, now) }, 4, 6),
		Entry("either shortly before an unknown outcome is forgotten", func(r *resizes) { r.Begin(6); r.End("", errLost, now.Add(-2*time.Minute)) }, 4, 6),
		Entry("4 when an unknown outcome is forgotten", func(r *resizes) { r.Begin(6); r.End("", errLost, now.Add(-2*time.Minute-1)) }, 4, 4),
		Entry("all of them if a write follows an unknown one", func(r *resizes) { r.Begin(6); r.End("", errLost, now); r.Begin(1) }, 1, 6),
		Entry("what the last one wrote if the outcome of the one before is known", func(r *resizes) { r.Begin(6); r.End("7", nil, now); r.Begin(1) }, 1, 4),
	)

	It("asks for what it is shown with from then on", func() {
		r := &resizes{}
		r.Begin(6)
		r.End("9", nil, now)
		Expect(r.Range("9", 6, now)).To(Equal([2]int{6, 6}))
		Expect(r.Range("10", 2, now)).To(Equal([2]int{2, 2}))
	})
})

var _ = Describe("A reduction of the machines that are shown", func() {
	It("counts at once", func() {
		visible, reduced := machinetaint.Reduced(false, nil, time.Hour)
		Expect(visible).To(Equal(2))
		Expect(reduced).To(BeTrue())
	})

	DescribeTable("is remembered", func(err error, later time.Duration, want bool) {
		visible, reduced := machinetaint.Reduced(true, err, later)
		Expect(visible).To(Equal(5), "the store shows what is stored by now")
		Expect(reduced).To(Equal(want))
	},
		Entry("after it took effect", nil, time.Duration(0), true),
		Entry("for two minutes", nil, 2*time.Minute, true),
		Entry("no longer", nil, 2*time.Minute+1, false),
		Entry("while its outcome is unknown", errLost, 2*time.Minute, true),
		Entry("not after a conflict", errConflict, time.Duration(0), false),
		Entry("not after a refusal", apierrors.NewBadRequest("no"), time.Duration(0), false),
	)
})

var _ = Describe("A deletion of a Machine that the store still shows", func() {
	gone := apierrors.NewNotFound(mcmapi.Resource("machines"), "m")

	DescribeTable("counts", func(ended bool, err error, later time.Duration, want bool) {
		Expect(machinetaint.Removed(ended, err, later)).To(Equal(want))
	},
		Entry("while it is in progress, however long that takes", false, nil, time.Hour, true),
		Entry("after it took effect", true, nil, time.Hour, true),
		Entry("after another client was faster", true, gone, time.Hour, true),
		Entry("for two minutes while its outcome is unknown", true, errLost, 2*time.Minute, true),
		Entry("no longer than that", true, errLost, 2*time.Minute+1, false),
		Entry("not after a conflict", true, errConflict, time.Duration(0), false),
	)
})
