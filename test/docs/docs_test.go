// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

// limit bounds one document. A machine boots in some seconds here.
const limit = 5 * time.Minute

func TestDocs(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Docs")
}

var _ = DescribeTable("A document's commands", func(text string, scripted ...string) {
	var all []string
	for _, script := range scripts(text) {
		all = append(all, strings.Join(script, "\n"))
	}
	Expect(all).To(HaveExactElements(scripted))
},
	Entry("are those behind a prompt", marker+"\n```console\n$ one\nprinted\n$ two\n```\n", "one\ntwo"),
	Entry("go on behind a backslash", marker+"\n```console\n$ one \\\n  more\nprinted\n```\n", "one \\\n  more"),
	Entry("are all where there is no prompt", marker+"\n```sh\none\ntwo   # why\n```\n", "one\ntwo   # why"),
	Entry("are those of every block that is marked", marker+"\n```\n$ one\n```\ntext\n\n"+marker+"\n\n```\n$ two\n```\n", "one\ntwo"),
	Entry("are those in lists, too", "1. Do\n\n   "+marker+"\n   ```\n   one\n     two\n   ```\n", "one\n  two"),
	Entry("of another cluster are apart, and come after the others", apart+"\n```\none\n```\n"+marker+"\n```\ntwo\n```\n"+apart+"\n```\nthree\n```\n"+marker+"\n```\nfour\n```\n", "two\nfour", "one", "three"),
	Entry("are none where nothing is marked", "```\n$ one\n```\n"),
	Entry("are none where text comes between", marker+"\ntext\n```\n$ one\n```\n"),
	Entry("are none after a marked block that has ended", marker+"\n```\n$ one\n```\n```\n$ two\n```\n", "one"),
)

// Every document has clusters of its own.
var _ = Describe("The documents", Ordered, ContinueOnFailure, func() {
	root, err := localcluster.FindRoot()
	if err != nil {
		panic(err)
	}
	BeforeAll(func(ctx context.Context) { built(ctx, root) })
	for _, path := range documents(root) {
		raw, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		all := scripts(string(raw))
		if len(all) == 0 {
			continue
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			panic(err)
		}
		It("say what works: "+name, func(ctx SpecContext) { perform(ctx, stages[name], newDesk(root), all) }, SpecTimeout(2*limit))
	}

	It("are there where something is prepared for them", func() {
		for name := range stages {
			Expect(filepath.Join(root, name)).To(BeAnExistingFile())
		}
	})
})

// perform runs a document's scripts, each on a cluster of its own.
func perform(ctx context.Context, s stage, d desk, all [][]string) {
	GinkgoHelper()
	for _, script := range all {
		cluster := s.start(ctx)
		reset := sync.OnceValue(cluster.Reset)
		DeferCleanup(func() { Expect(reset()).To(Succeed()) })
		d.run(ctx, cluster, append(s.before(), script...))
		Expect(reset()).To(Succeed())
	}
}

// documents are README.md, CONTRIBUTING.md and what is below docs.
func documents(root string) []string {
	paths := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".md") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		panic(err)
	}
	return paths
}
