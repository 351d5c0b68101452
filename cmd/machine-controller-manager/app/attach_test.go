// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Informers that several controllers listen to", func() {
	// attaching expects two controllers, attaches the first, and runs do.
	attaching := func(do func(c *caches, ended func() bool, cancel func())) {
		GinkgoHelper()
		synctest.Test(suite, func(*testing.T) {
			c := &caches{expected: map[string]bool{}, complete: make(chan struct{})}
			c.expect("first", "second")
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ended := false
			go func() {
				c.attached("first")
				c.awaitExpected(ctx)
				ended = true
			}()
			do(c, func() bool { synctest.Wait(); return ended }, cancel)
			synctest.Wait()
		})
	}

	It("wait until all of these have added their handlers", func() {
		attaching(func(c *caches, ended func() bool, _ func()) {
			Expect(ended()).To(BeFalse())
			c.attached("second")
			Expect(ended()).To(BeTrue())
			c.awaitExpected(context.Background())
		})
	})

	It("do not wait long for one that does not come", func() {
		attaching(func(_ *caches, ended func() bool, _ func()) {
			time.Sleep(attachPatience - time.Nanosecond)
			Expect(ended()).To(BeFalse())
			time.Sleep(time.Nanosecond)
			Expect(ended()).To(BeTrue())
		})
	})

	It("do not wait while the process ends", func() {
		attaching(func(_ *caches, ended func() bool, cancel func()) {
			cancel()
			Expect(ended()).To(BeTrue())
		})
	})

	It("wait for instant release once more than Nodes is needed", func() {
		c := &caches{expected: map[string]bool{}, complete: make(chan struct{}), needed: make(chan struct{}), later: []string{releaseName}}
		c.startAll()
		c.startAll()
		Expect(c.needed).To(BeClosed())
		Expect(c.expected).To(HaveKey(releaseName))
	})
})
