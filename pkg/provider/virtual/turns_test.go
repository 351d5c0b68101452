// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Turns", func() {
	It("are taken one after the other for one name, at once for several, and forgotten afterwards", bubble(func() {
		var t keyLocks
		from, now, most := time.Now(), 0, 0
		ended := make(chan struct{}, 20)
		for i := range 20 {
			go func() {
				defer func() { ended <- struct{}{} }()
				leave, err := t.acquire(context.Background(), []string{"a", "b"}[i%2])
				Expect(err).NotTo(HaveOccurred())
				defer leave()
				if i%2 == 0 {
					now++
					most = max(most, now)
				}
				time.Sleep(time.Second)
				if i%2 == 0 {
					now--
				}
			}()
		}
		for range 20 {
			<-ended
		}
		Expect(most).To(Equal(1))
		Expect(time.Since(from)).To(Equal(10 * time.Second))
		Expect(t.of).To(BeEmpty())
	}))

	It("need not be waited for", bubble(func() {
		var t keyLocks
		leave, err := t.acquire(context.Background(), "a")
		Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = t.acquire(ctx, "a")
		Expect(err).To(MatchError(context.DeadlineExceeded))
		leave()
		synctest.Wait()
		Expect(t.of).To(BeEmpty())
	}))
})
