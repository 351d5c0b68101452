// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
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
