// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Two groups are empty: one of machines with 4 CPUs, the other with 8.
var _ = real("The expander", func() {
	var small, large pool
	// waiting are pods that each take 3 CPUs, and such that take 7.
	waiting := func(ctx context.Context, name string, threes, sevens int32) {
		GinkgoHelper()
		small, large = pool{name: name + "-small", workers: name, cpus: 4}, pool{name: name + "-large", workers: name, cpus: 8}
		small.create(ctx, "0:3", 0)
		large.create(ctx, "0:3", 0)
		workload(ctx, name+"-threes", name, threes)
		workload(ctx, name+"-sevens", name, sevens, takes("7"))
		Eventually(func() (int, error) {
			a, err := pods(ctx, name+"-threes")
			Expect(err).NotTo(HaveOccurred())
			b, err := pods(ctx, name+"-sevens")
			return len(a) + len(b), err
		}).Should(BeEquivalentTo(threes + sevens))
	}
	flags := []string{"--balance-similar-node-groups=false"}

	It("random: takes one of them, and for these pods no other", func(ctx context.Context) {
		waiting(ctx, "random", 1, 0)
		autoscale(append(flags, "--expander=random")...)
		runs(ctx, "random-threes", 1)
		a, err := small.replicas(ctx)
		Expect(err).NotTo(HaveOccurred())
		b, err := large.replicas(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(a + b).To(BeEquivalentTo(1))
	})

	It("most-pods: takes the one that all of them fit", func(ctx context.Context) {
		waiting(ctx, "most-pods", 2, 1)
		autoscale(append(flags, "--expander=most-pods")...)
		runs(ctx, "most-pods-threes", 2)
		runs(ctx, "most-pods-sevens", 1)
		small.becomes(ctx, "R0 0+0+0")
		large.becomes(ctx, "R2 2+0+0")
	})

	It("least-waste: takes the one that leaves less idle", func(ctx context.Context) {
		waiting(ctx, "least-waste", 1, 0)
		autoscale(append(flags, "--expander=least-waste")...)
		runs(ctx, "least-waste-threes", 1)
		small.becomes(ctx, "R1 1+0+0")
		large.becomes(ctx, "R0 0+0+0")
	})
})
