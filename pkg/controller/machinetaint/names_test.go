// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
)

var _ = DescribeTable("A raise of replicas accounts for names of machines",
	func(names, before, after string, raised int, inReserve, left string, more int) {
		listing := func(returned string) *api.MachineDeployment {
			d := &api.MachineDeployment{}
			d.Namespace, d.Annotations = ns, map[string]string{api.ReturnedAnnotation: returned}
			return d
		}
		all := map[string]bool{}
		for _, name := range strings.Fields(names) {
			all[name] = true
		}
		machinetaint.SettleNames(all, listing(before), listing(after), raised, func(name string) bool {
			Expect(name).To(HavePrefix(ns + "/"))
			return strings.Contains(inReserve, strings.TrimPrefix(name, ns+"/"))
		})
		for _, name := range strings.Fields(left) {
			Expect(all).To(HaveKey(name))
		}
		Expect(all).To(HaveLen(len(strings.Fields(left)) + more))
	},
	Entry("that are listed as returned", "a b", "", "a", 1, "a b", "b", 0),
	Entry("and of a machine that is gone, where more is raised than is listed anew", "b c d", "a", "a,b", 2, "", "", 1),
	Entry("and of no other, where what is listed accounts for all of it", "a b", "", "a", 1, "", "b", 0),
	Entry("of as many that are gone as are raised", "a b c", "", "", 2, "", "", 1),
	Entry("not of those that are in reserve still", "a b", "", "", 2, "a b", "a b", 0),
	Entry("of none, where nothing is left of the raise", "a", "", "", 0, "", "a", 0),
)
