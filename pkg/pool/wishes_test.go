// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

var _ = DescribeTable("A reserve is requested", func(field int32, key, value string, requested bool) {
	d := &machine.MachineDeployment{}
	d.Spec.ExcessReplicas = &field
	if key != "" {
		d.Annotations = map[string]string{key: value}
	}
	wishes, err := pool.WishesOf(d)
	Expect(err).NotTo(HaveOccurred())
	Expect(wishes.Any()).To(Equal(requested))
},
	Entry("not by an unset field", int32(0), "", "", false),
	Entry("by the field", int32(1), "", "", true),
	Entry("by bounds", int32(0), machine.BoundsAnnotation, "1:5:1", true),
	Entry("not by bounds without an excess", int32(0), machine.BoundsAnnotation, "1:5", false),
	Entry("by a share of the pool's excess", int32(0), machine.ShareAnnotation, "1", true),
	Entry("by a Reserve", int32(0), machine.RequestedExcessAnnotation, "office-hours=2", true),
	Entry("by a Reserve, for one machine", int32(0), machine.RequestedExcessAnnotation, "office-hours=1", true),
	Entry("not by a share of none", int32(0), machine.ShareAnnotation, "0", false),
	Entry("not by a Reserve that is empty", int32(0), machine.RequestedExcessAnnotation, "office-hours=0", false),
)

var _ = DescribeTable("A reserve is drained by the word alone", func(text string, want bool) {
	d := &machine.MachineDeployment{}
	Expect(pool.Drained(d)).To(BeFalse(), "without the annotation")
	d.Annotations = map[string]string{machine.DrainReserveAnnotation: text}
	Expect(pool.Drained(d)).To(Equal(want))
},
	Entry(nil, "true", true),
	Entry(nil, "false", false),
	Entry(nil, "yes", false),
	Entry(nil, "", false),
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
