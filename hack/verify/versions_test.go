// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Versions of modules", func() {
	DescribeTable("differ",
		func(ours, theirs string, want ...string) {
			all := map[string]goMod{}
			for folder, text := range map[string]string{".": ours, "hack/x": theirs} {
				var m goMod
				Expect(json.Unmarshal([]byte(text), &m)).To(Succeed())
				all[folder] = m
			}
			Expect(compareVersions(all)).To(HaveExactElements(want))
		},
		Entry("if they are not the same", `{"Require":[{"Path":"a","Version":"v1.0.0"}]}`, `{"Require":[{"Path":"a","Version":"v1.0.1"}]}`,
			"a: v1.0.0 in ., v1.0.1 in hack/x"),
		Entry("not if they are the same", `{"Require":[{"Path":"a","Version":"v1.0.0"}]}`, `{"Require":[{"Path":"a","Version":"v1.0.0"}]}`),
		Entry("not if one of them requires the module alone", `{"Require":[{"Path":"a","Version":"v1.0.0"}]}`, `{"Require":[{"Path":"b","Version":"v1.0.1"}]}`),
		Entry("not if a replacement makes them the same", `{"Require":[{"Path":"a","Version":"v1.0.0"}]}`,
			`{"Require":[{"Path":"a","Version":"v0.0.0"}],"Replace":[{"Old":{"Path":"a"},"New":{"Path":"a","Version":"v1.0.0"}}]}`),
		Entry("if a replacement makes them differ", `{"Require":[{"Path":"a","Version":"v1.0.0"}]}`,
			`{"Require":[{"Path":"a","Version":"v1.0.0"}],"Replace":[{"Old":{"Path":"a"},"New":{"Path":"../a"}}]}`, "a: v1.0.0 in ., ../a in hack/x"),
		Entry("not if what is replaced is not required", `{"Require":[{"Path":"a","Version":"v1.0.0"}]}`,
			`{"Replace":[{"Old":{"Path":"a"},"New":{"Path":"a","Version":"v1.0.1"}}]}`),
	)

	It("do not differ in what a first start builds", func() {
		folder, err := os.Getwd()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.Chdir, folder)
		Expect(os.Chdir("../..")).To(Succeed())
		Expect(differingVersions()).To(BeEmpty())
	})
})
