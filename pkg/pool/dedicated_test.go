// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

var _ = DescribeTable("How many spare machines are dedicated while workload has three",
	func(text, bounds, want string, number int) {
		d := newWorld().deployment
		d.Annotations[machine.DedicatedAnnotation] = text
		if bounds != "" {
			d.Annotations[machine.BoundsAnnotation] = bounds
		}
		all := pool.Dedications(d, 3)
		Expect(machine.DedicationsText(all)).To(Equal(want))
		Expect(pool.Dedicated(all)).To(Equal(number))
	},
	Entry("none", "", "", "", 0),
	Entry("those of two owners", "ci=1 shop=2", "", "ci=1 shop=2", 3),
	Entry("no more in all than a MachineDeployment can have", "ci=2147483647 shop=2", "", "ci=2147483647 shop=0", math.MaxInt32),
	Entry("as many as max leaves room for", "ci=1 shop=2", "1:5", "ci=1 shop=1", 2),
	Entry("all, if max leaves room for them", "ci=1 shop=2", "1:6", "ci=1 shop=2", 3),
	Entry("none, if workload has reached max", "ci=1 shop=2", "1:3", "ci=0 shop=0", 0),
	Entry("none, if workload exceeds max", "ci=1 shop=2", "1:2", "ci=0 shop=0", 0),
	Entry("all, if bounds cannot be read", "ci=1 shop=2", "many", "ci=1 shop=2", 3),
	Entry("none, if the annotation cannot be read", "shop", "", "", 0),
)

var _ = DescribeTable("Dedicated machines are claimed", func(text string, want machine.Claims) {
	d := newWorld().deployment
	d.Annotations[machine.ClaimedAnnotation] = text
	Expect(pool.ClaimsOf(d)).To(Equal(want))
},
	Entry("by no record", "", machine.Claims{}),
	Entry("by name, for a number of machines for workload", "4:a,b", machine.Claims{Replicas: 4, Machines: []string{"a", "b"}}),
)
