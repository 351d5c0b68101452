// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

var _ = Describe("What machines are prepared for", func() {
	It("is a list of images and workloads of namespaces", func() {
		Expect(ParsePreparations("- {namespace: shop, workloads: [Deployment/web]}\n- namespace: batch\n  images: ['r.example:5000/a/b@sha256:0', c]\n  imagePullSecrets: [key]\n")).To(Equal([]autoscaling.Preparation{
			{Namespace: "shop", Workloads: []string{"Deployment/web"}},
			{Namespace: "batch", Images: []string{"r.example:5000/a/b@sha256:0", "c"}, ImagePullSecrets: []string{"key"}},
		}))
		Expect(ParsePreparations("[]")).To(BeEmpty())
		Expect(ParsePreparations(strings.Repeat("- {namespace: a, images: [b]}\n", 10))).To(HaveLen(10))
	})

	DescribeTable("says what is wrong", func(text, problem string) {
		_, err := ParsePreparations(text)
		Expect(err).To(MatchError(ContainSubstring(problem)))
	},
		Entry("no list", "shop", "write a list, for example [{namespace: shop, workloads: [Deployment/web]}]"),
		Entry("an unknown field", "[{namespace: a, image: b}]", `unknown field "image"`),
		Entry("no namespace", "[{images: [b]}]", `entry 1: namespace ""`),
		Entry("a namespace that cannot be", "[{namespace: a, images: [b]}, {namespace: A.b, images: [b]}]", `entry 2: namespace "A.b"`),
		Entry("nothing", "[{namespace: a}]", "set images or workloads"),
		Entry("an empty image", "[{namespace: a, images: ['']}]", `image "" is empty`),
		Entry("an image with a space", "[{namespace: a, images: ['a b']}]", `image "a b" is empty or contains spaces`),
		Entry("a Secret that cannot be", "[{namespace: a, images: [b], imagePullSecrets: ['/']}]", `image pull secret "/"`),
		Entry("another kind", "[{namespace: a, workloads: [CronJob/b]}]", `workload "CronJob/b": write one of DaemonSet, Deployment, Job, PodTemplate, ReplicaSet, ReplicationController, StatefulSet, a slash and a name`),
		Entry("no name", "[{namespace: a, workloads: [Deployment]}]", `workload "Deployment"`),
		Entry("too many entries", strings.Repeat("- {namespace: a, images: [b]}\n", 11), "it has 11 entries; at most 10 are possible"),
		Entry("too many images", "[{namespace: a, images: ["+strings.Repeat("b, ", 21)+"]}]", "name at most 20 images and workloads"),
		Entry("too long a text", "["+strings.Repeat(" ", 8192)+"]", "it has more than 8192 characters"),
	)
})
