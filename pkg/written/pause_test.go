// SPDX-License-Identifier: Apache-2.0

package written_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/pkg/written"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("A pause before the next attempt", func() {
	DescribeTable("doubles from one to the next, up to two seconds",
		func(attempt int, want time.Duration) {
			storm.Bubble(suite, func() {
				begun := time.Now()
				Expect(written.Pause(context.Background(), context.Background(), clock.RealClock{}, attempt)).To(Succeed())
				Expect(time.Since(begun)).To(Equal(want))
			})
		},
		Entry("the first", 1, 50*time.Millisecond),
		Entry("the second", 2, 100*time.Millisecond),
		Entry("the sixth", 6, 1600*time.Millisecond),
		Entry("the seventh", 7, 2*time.Second),
		Entry("the hundredth", 100, 2*time.Second),
	)

	DescribeTable("fails once one of its contexts has ended, and says why",
		func(which int) {
			storm.Bubble(suite, func() {
				contexts, why := []context.Context{context.Background(), context.Background()}, errors.New("enough")
				ctx, cancel := context.WithCancelCause(context.Background())
				contexts[which] = ctx
				begun := time.Now()
				time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
				Expect(written.Pause(contexts[0], contexts[1], clock.RealClock{}, 9)).To(MatchError(why))
				Expect(time.Since(begun)).To(Equal(10 * time.Millisecond))
			})
		},
		Entry("that of the caller", 0),
		Entry("that of the process", 1),
	)
})

var _ = It("The error of a write whose object is gone is none", func() {
	gone := apierrors.NewNotFound(schema.GroupResource{}, "a")
	other := apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("newer"))
	Expect(written.IgnoreNotFound(gone)).To(Succeed())
	Expect(written.IgnoreNotFound(nil)).To(Succeed())
	Expect(written.IgnoreNotFound(other)).To(Equal(error(other)))
})
