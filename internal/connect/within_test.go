// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/connect"
)

var _ = Describe("A request that takes no context", func() {
	It("is answered in its time", func(ctx context.Context) {
		answer, err := connect.Within(ctx, func() (string, error) { return "yes", nil })
		Expect(err).NotTo(HaveOccurred())
		Expect(answer).To(Equal("yes"))
	})

	It("says why it failed, with what it has", func(ctx context.Context) {
		refused := errors.New("refused")
		answer, err := connect.Within(ctx, func() (string, error) { return "a part", refused })
		Expect(err).To(MatchError(refused))
		Expect(answer).To(Equal("a part"))
	})

	It("is abandoned where the context ends, for the reason of the context, and ends later", func() {
		synctest.Test(suite, func(*testing.T) {
			tooLong := errors.New("too long")
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, tooLong)
			defer cancel()
			begun, ended := time.Now(), false
			answer, err := connect.Within(ctx, func() (string, error) {
				time.Sleep(time.Hour)
				ended = true
				return "late", nil
			})
			Expect(err).To(MatchError(tooLong))
			Expect(answer).To(BeEmpty())
			Expect(time.Since(begun)).To(Equal(time.Minute))
			time.Sleep(time.Hour)
			synctest.Wait()
			Expect(ended).To(BeTrue())
		})
	})
})
