// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Memory", Serial, func() {
	const version2, version1 = "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"
	container := func(files ...string) fstest.MapFS {
		root := fstest.MapFS{}
		for i := 0; i < len(files); i += 2 {
			root[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
		}
		return root
	}

	DescribeTable("is limited to nine tenths of the container's limit", func(want int, files ...string) {
		Expect(memoryLimit(container(files...))).To(BeEquivalentTo(want))
	},
		Entry("of cgroups version 2", 900<<20, version2, "1048576000\n"),
		Entry("of version 1", 900<<20, version1, "1048576000\n"),
		Entry("none", 0, version2, "max\n"),
		Entry("none of version 1", 0, version1, "9223372036854771712\n"),
		Entry("no container", 0),
		Entry("what cannot be read as a number", 0, version2, "much\n"),
	)

	Describe("settings", func() {
		BeforeEach(func() {
			percent, limit, rate := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64), runtime.MemProfileRate
			runtime.MemProfileRate = 512 << 10
			DeferCleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit); runtime.MemProfileRate = rate })
		})
		now := func() (percent int, limit int64) {
			percent = debug.SetGCPercent(100)
			return percent, debug.SetMemoryLimit(-1)
		}

		It("follow the container", func() {
			GinkgoT().Setenv("GOGC", "")
			GinkgoT().Setenv("GOMEMLIMIT", "")
			TuneMemory(container(version2, "1048576000\n"), false)
			percent, limit := now()
			Expect(percent).To(Equal(gcPercent))
			Expect(limit).To(BeEquivalentTo(900 << 20))
			Expect(runtime.MemProfileRate).To(BeZero())
		})

		It("of the environment win", func() {
			GinkgoT().Setenv("GOGC", "100")
			GinkgoT().Setenv("GOMEMLIMIT", "1GiB")
			TuneMemory(container(version2, "1048576000\n"), false)
			percent, limit := now()
			Expect(percent).To(Equal(100))
			Expect(limit).To(BeEquivalentTo(math.MaxInt64))
		})

		It("leave heap profiles alone where these are served", func() {
			TuneMemory(container(), true)
			Expect(runtime.MemProfileRate).To(Equal(512 << 10))
		})
	})
})
