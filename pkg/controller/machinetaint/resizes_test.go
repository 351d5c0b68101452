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
		Entry("either if a conflict follows an unknown outcome", func(r *resizes) { r.Begin(6); r.End("", errLost, now); r.Begin(6); r.End("", errConflict, now) }, 4, 6),
		Entry("either if a conflict follows a write that is not shown", func(r *resizes) { r.Begin(6); r.End("9", nil, now); r.Begin(1); r.End("", errConflict, now) }, 4, 6),
		Entry("all of them while a write follows one that is not shown", func(r *resizes) { r.Begin(6); r.End("9", nil, now); r.Begin(1) }, 1, 6),
		Entry("all of them if the outcome of one is unknown that follows one that is not shown", func(r *resizes) { r.Begin(6); r.End("9", nil, now); r.Begin(1); r.End("", errLost, now) }, 1, 6),
		Entry("4 if a conflict follows while the first write is still in progress", func(r *resizes) { r.Begin(6); r.Begin(6); r.End("7", nil, now); r.End("", errConflict, now) }, 4, 4),
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
		visible, reduced := machinetaint.Reduced(time.Hour)
		Expect(visible).To(Equal(2))
		Expect(reduced).To(BeTrue())
	})

	DescribeTable("is remembered", func(want bool, later time.Duration, ends ...error) {
		visible, reduced := machinetaint.Reduced(later, ends...)
		Expect(visible).To(Equal(5), "the store shows what is stored by now")
		Expect(reduced).To(Equal(want))
	},
		Entry("after it took effect", true, time.Duration(0), nil),
		Entry("for two minutes", true, 2*time.Minute, nil),
		Entry("no longer", false, 2*time.Minute+1, nil),
		Entry("while its outcome is unknown", true, 2*time.Minute, errLost),
		Entry("not after a conflict", false, time.Duration(0), errConflict),
		Entry("not after a refusal", false, time.Duration(0), apierrors.NewBadRequest("no")),
		Entry("though a conflict follows", true, 2*time.Minute, nil, errConflict),
		Entry("though a refusal follows", true, 2*time.Minute, nil, apierrors.NewBadRequest("no")),
		Entry("no longer, though a conflict follows", false, 2*time.Minute+1, nil, errConflict),
		Entry("while its outcome is unknown, though a conflict follows", true, 2*time.Minute, errLost, errConflict),
	)
})

var _ = Describe("A deletion of a Machine that the store still shows", func() {
	gone := apierrors.NewNotFound(mcmapi.Resource("machines"), "m")

	DescribeTable("counts", func(want bool, later time.Duration, ends ...error) {
		Expect(machinetaint.Removed(later, ends...)).To(Equal(want))
	},
		Entry("while it is in progress, however long that takes", true, time.Hour),
		Entry("after it took effect", true, time.Hour, nil),
		Entry("after another client was faster", true, time.Hour, gone),
		Entry("after it took effect, though a conflict follows", true, time.Hour, nil, errConflict),
		Entry("after it took effect, though the outcome of another one is unknown", true, time.Hour, nil, errLost),
		Entry("for two minutes while its outcome is unknown", true, 2*time.Minute, errLost),
		Entry("no longer than that", false, 2*time.Minute+1, errLost),
		Entry("not after a conflict", false, time.Duration(0), errConflict),
		Entry("for two minutes while its outcome is unknown, though a conflict follows", true, 2*time.Minute, errLost, errConflict),
		Entry("no longer than that, though a conflict follows", false, 2*time.Minute+1, errLost, errConflict),
	)
})
