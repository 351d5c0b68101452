// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/localcluster"
)

// limit bounds one document. A machine boots in some seconds here.
const limit = 5 * time.Minute

func TestDocs(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Docs")
}

var _ = DescribeTable("A document's commands", func(text string, commands ...string) {
	Expect(strings.Join(script(text), "\n")).To(Equal(strings.Join(commands, "\n")))
},
	Entry("are those behind a prompt", marker+"\n```console\n$ one\nprinted\n$ two\n```\n", "one", "two"),
	Entry("are all where there is no prompt", marker+"\n```sh\none\ntwo   # why\n```\n", "one", "two   # why"),
	Entry("are those of every block that is marked", marker+"\n```\n$ one\n```\ntext\n\n"+marker+"\n\n```\n$ two\n```\n", "one", "two"),
	Entry("are none where nothing is marked", "```\n$ one\n```\n"),
	Entry("are none where text comes between", marker+"\ntext\n```\n$ one\n```\n"),
	Entry("are none after a marked block that has ended", marker+"\n```\n$ one\n```\n```\n$ two\n```\n", "one"),
)

// Every document has a cluster of its own, as it is after `make demo`'s first chapter: nine machines in three zones.
var _ = Describe("The documents", func() {
	root, err := localcluster.FindRoot()
	if err != nil {
		panic(err)
	}
	for _, path := range documents(root) {
		raw, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		commands := script(string(raw))
		if len(commands) == 0 {
			continue
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			panic(err)
		}
		It("say what works: "+name, func(ctx SpecContext) {
			run(ctx, root, prepared(ctx, root), commands)
		}, SpecTimeout(2*limit))
	}
})

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

// prepared is a cluster with our two binaries, the plugin, and the pool of three zones.
func prepared(ctx context.Context, root string) *localcluster.Cluster {
	GinkgoHelper()
	cluster, err := localcluster.Start(ctx, localcluster.Options{Name: "docs", Out: GinkgoWriter, UnsafeNoFsync: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Reset()).To(Succeed()) })
	Expect(cluster.Apply(ctx, "kubernetes/crds", "kubernetes/policies")).To(Succeed())
	for _, name := range []string{"machine-controller", "machine-controller-manager"} {
		_, err := cluster.RunProgram(ctx, localcluster.Program{Name: name})
		Expect(err).NotTo(HaveOccurred())
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(filepath.Dir(cluster.Kubectl()), "kubectl-evenkeel"), "./cmd/kubectl-evenkeel")
	build.Dir = root
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	Expect(cluster.Apply(ctx, "examples/three-zones.yaml")).To(Succeed())
	run(ctx, root, cluster, []string{
		"kubectl wait --for=jsonpath='{.status.availableReplicas}'=3 machinedeployment --all --timeout=2m",
	})
	return cluster
}

// run types commands into a shell at the repository's root.
func run(ctx context.Context, root string, cluster *localcluster.Cluster, commands []string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-euxo", "pipefail", "-c", strings.Join(commands, "\n"))
	shell.Dir = root
	shell.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "PATH="+filepath.Dir(cluster.Kubectl())+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := shell.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
}
