// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = DescribeTable("Machines for workload, of 6 replicas", func(excess, applied string, workload, requested int) {
	d := world.MachineDeployment("pool", 6)
	d.Annotations[v1alpha1.AppliedExcessAnnotation] = excess
	if applied != "" {
		d.Annotations[v1alpha1.AppliedReplicasAnnotation] = applied
	}
	Expect(world.Workload(d)).To(Equal(workload))
	Expect(world.Requested(d)).To(Equal(requested))
},
	Entry("without a reserve", "", "", 6, 6),
	Entry("with one beyond replicas", "2,max=9", "", 6, 6),
	Entry("with one that replicas include", "3,max=9,counted=2,replicas=6", "", 4, 4),
	Entry("with one that has to take a reduction", "3,counted=2,replicas=7", "", 5, 5),
	Entry("with a reduction beyond the reserve", "3,counted=2,replicas=9", "", 6, 6),
	Entry("with replicas that were raised since", "3,counted=2,replicas=5", "", 4, 4),
	Entry("while growth is split", "3,counted=2,replicas=6", "3", 3, 4),
	Entry("while growth was split before a reduction", "3,counted=2,replicas=6", "5", 4, 4),
)
