// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = DescribeTable("A document names paths",
	func(text string, named ...string) { Expect(pathsIn(text)).To(HaveExactElements(named)) },
	Entry("in backquotes", "see `pkg/reserve`, and `test/sim/doc.go`", "pkg/reserve", "test/sim/doc.go"),
	Entry("in commands", "`go test ./pkg/fit -update`", "pkg/fit"),
	Entry("in blocks of code", "1. Do\n\n   ```sh\n   kubectl apply -k kubernetes/deploy/manager\n   ```\n\n`hack/up`\n", "kubernetes/deploy/manager", "hack/up"),
	Entry("of several packages", "`./test/integration/...`", "test/integration"),
	Entry("once", "`pkg/fit` and `pkg/fit/`", "pkg/fit"),
	Entry("of this repository alone", "`extensions/pkg/webhook`, `example.com/pkg/fit`, `min/max`"),
	Entry("that have a folder", "`test`, `docs`"),
	Entry("not in its prose", "units/laws in pkg/fit"),
)

var _ = DescribeTable("A path stands for",
	func(named string, all ...string) { Expect(patterns(named)).To(HaveExactElements(all)) },
	Entry("itself", "pkg/fit", "pkg/fit"),
	Entry("whatever is there for a placeholder", "test/builders/<controller>", "test/builders/*"),
	Entry("each of its alternatives", "pkg/{fit,pool}/{a,b}.go", "pkg/fit/a.go", "pkg/fit/b.go", "pkg/pool/a.go", "pkg/pool/b.go"),
)

var _ = Describe("Documents", func() {
	// wrong returns what is wrong in docs/a.md, beside docs/b.md and pkg/fit.
	wrong := func(a string) []string {
		found, err := deadPaths(fstest.MapFS{
			"README.md": {}, "CHANGELOG.md": {}, "CONTRIBUTING.md": {}, "RELEASE.md": {}, "SECURITY.md": {}, "test/x": {}, "pkg/fit/doc.go": {}, "pkg/empty/old": {Mode: fs.ModeDir},
			"docs/a.md": {Data: []byte(a)}, "docs/b.md": {Data: []byte("## `b`, and more\n")},
		})
		Expect(err).NotTo(HaveOccurred())
		return found
	}

	DescribeTable("are right",
		func(text string) { Expect(wrong(text)).To(BeEmpty()) },
		Entry("where what they name is there", "`pkg/fit`, `pkg/*`, `pkg/<name>/doc.go`, `pkg/{fit,*}/doc.go`"),
		Entry("where what they link to is there", "# A\n[a](#a) [b](b.md) [more](b.md#b-and-more) [up](../pkg/fit/doc.go) [far](https://example.com/a)\n"),
		Entry("where a link names an anchor", "<a id=\"old\"></a>\n[a](#old)"),
		Entry("where a link names a heading that is there twice", "# A\n# A\n[a](#a) [b](#a-1)"),
		Entry("where a link names a heading that is a link", "# [A](b.md) `b`\n[a](#a-b)"),
		Entry("where a link is code", "`[a](c.md)`\n```\n[a](c.md)\n```\n"),
	)

	DescribeTable("are wrong",
		func(text, planted string) { Expect(wrong(text)).To(ConsistOf("docs/a.md: there is no " + planted)) },
		Entry("where a folder has gone", "`pkg/signs`", "pkg/signs"),
		Entry("where a folder is empty, which is not in a clone", "`pkg/empty`", "pkg/empty"),
		Entry("where one of several has gone", "`pkg/{fit,signs}`", "pkg/{fit,signs}"),
		Entry("where nothing matches", "`pkg/<name>/plan.go`", "pkg/<name>/plan.go"),
		Entry("where a page has gone", "[words](words.md)", "words.md"),
		Entry("where a heading has gone", "[b](b.md#c)", "b.md#c"),
		Entry("where a heading of their own has gone", "# A\n[b](#b)", "#b"),
		Entry("where what looks like a heading is code", "```\n# A\n```\n[a](#a)", "#a"),
		Entry("where a heading is there only once", "# A\n[a](#a-1)", "#a-1"),
		Entry("where a picture has gone", "![a](pictures/a.svg)", "pictures/a.svg"),
		Entry("where the text of a link has two lines", "[two\nlines](c.md)", "c.md"),
		Entry("where the text of a link is code", "[`a`](c.md)", "c.md"),
		Entry("where a link has a title", `[a](c.md "C")`, "c.md"),
		Entry("where the target is below", "[a][c]\n\n[c]: c.md", "c.md"),
		Entry("where HTML links", `<a href="c.md">c</a>`, "c.md"),
		Entry("where a link begins at the root of a site", "[a](/docs/b.md)", "/docs/b.md"),
	)
})
