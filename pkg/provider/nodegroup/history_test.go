// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
)

var _ = Describe("A name that has left the annotation", func() {
	It("counts for a minute from when it was last there", func() {
		begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		after := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
		r := &recentNames{}
		r.addNames(map[string]time.Time{"a": {}}, begun)
		r.addNames(map[string]time.Time{"a": {}, "b": {}}, after(50))
		r.addNames(nil, after(70))
		Expect(r.contains("a", after(109))).To(BeTrue())
		Expect(r.contains("a", after(110))).To(BeFalse())
		r.addNames(nil, after(110))
		Expect(r.last).To(BeEmpty())
	})
})

var _ = Describe("A gate", func() {
	It("is gone when all who waited for it have left, those who gave up included", func() {
		g := &groupLocks{}
		leave, err := g.acquire(context.Background(), "pool")
		Expect(err).NotTo(HaveOccurred())
		gone, giveUp := context.WithCancel(context.Background())
		giveUp()
		_, err = g.acquire(gone, "pool")
		Expect(code(err)).To(Equal(codes.Unavailable))
		leave()
		Expect(g.byGroup).To(BeEmpty())
	})
})
