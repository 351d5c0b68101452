// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/chart"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// stage is what a document takes for granted.
type stage struct {
	// bare is an API server with nothing of ours. Else there is what `make up` starts, with three machines in each of three zones.
	bare bool
	// programs run from the beginning.
	programs []localcluster.Program
	// commands are typed before those of the document.
	commands []string
}

// monitored is an API server that knows what Prometheus' operator reads.
const monitored = "kubectl apply -f test/docs/testdata/monitoring.yaml"

// hub is what the Deployment of a hub starts, where pods are no more than objects.
var hub = localcluster.Program{Name: "federatedhpa", Package: "./cmd/" + localcluster.Workloads, Flags: []string{
	"--controllers=federatedhpa", "--namespace=kube-system", "--federation-clusters-namespace=evenkeel-clusters",
}}

// ours are those of `make up`.
var ours = []localcluster.Program{{Name: "machine-controller"}, {Name: "machine-controller-manager"}, {Name: localcluster.Workloads}}

// stages are those of documents that need another one than most do.
var stages = map[string]stage{
	"docs/install.md": {bare: true, commands: []string{monitored}},
	"docs/metrics.md": {bare: true, commands: []string{monitored, "helm install evenkeel charts/evenkeel --namespace kube-system"}},
	"docs/tracing.md": {bare: true, commands: []string{"helm install evenkeel charts/evenkeel --namespace kube-system"}},
	// One cluster is hub and member.
	"docs/federation.md": {bare: true, programs: []localcluster.Program{hub}, commands: []string{
		`user=$(kubectl config view -o jsonpath='{.users[0].name}')`, `cluster=$(kubectl config view -o jsonpath='{.clusters[0].name}')`,
		`kubectl config set-context hub --cluster "$cluster" --user "$user"`, `kubectl config set-context munich --cluster "$cluster" --user "$user"`,
	}},
	"docs/plugin.md": {commands: []string{"cp $KUBECONFIG shoot.kubeconfig"}},
}

// start is a cluster for one script of a document.
func (s stage) start(ctx context.Context) *localcluster.Cluster {
	GinkgoHelper()
	o := localcluster.Options{Name: "docs", Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true}
	if s.bare {
		o.Components = localcluster.APIServerOnly
	}
	cluster, err := localcluster.Start(ctx, o)
	Expect(err).NotTo(HaveOccurred())
	programs := s.programs
	if !s.bare {
		Expect(cluster.Apply(ctx, "kubernetes/crds", "kubernetes/policies", "examples/three-zones.yaml")).To(Succeed())
		programs = append(programs, ours...)
	}
	for _, program := range programs {
		_, err := cluster.RunProgram(ctx, program)
		Expect(err).NotTo(HaveOccurred())
	}
	return cluster
}

// before is what is typed first.
func (s stage) before() []string {
	if s.bare {
		return s.commands
	}
	return append([]string{"kubectl wait --for=jsonpath='{.status.availableReplicas}'=3 machinedeployment --all --timeout=2m"}, s.commands...)
}

// desk is the folder that a document's commands are typed in: it looks like the repository's root, and what they write stays there.
type desk struct{ dir, home string }

func newDesk(root string) desk {
	GinkgoHelper()
	d := desk{dir: filepath.Join(root, ".local", "docs")}
	d.home = filepath.Join(d.dir, ".home")
	Expect(os.RemoveAll(d.dir)).To(Succeed())
	Expect(os.MkdirAll(d.home, 0o755)).To(Succeed())
	DeferCleanup(os.RemoveAll, d.dir)
	entries, err := os.ReadDir(root)
	Expect(err).NotTo(HaveOccurred())
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			Expect(os.Symlink(filepath.Join(root, entry.Name()), filepath.Join(d.dir, entry.Name()))).To(Succeed())
		}
	}
	return d
}

// run types commands into a shell, and y where something asks.
func (d desk) run(ctx context.Context, cluster *localcluster.Cluster, commands []string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig())
	Expect(err).NotTo(HaveOccurred())
	mine := filepath.Join(d.home, "kubeconfig")
	Expect(os.WriteFile(mine, kubeconfig, 0o600)).To(Succeed())
	shell := exec.CommandContext(ctx, "bash", "-euxo", "pipefail", "-c", strings.Join(commands, "\n"))
	shell.Dir, shell.Stdin = d.dir, yes{}
	shell.Env = append(os.Environ(), "KUBECONFIG="+mine, "HOME="+d.home, "PATH="+filepath.Dir(cluster.Kubectl())+string(os.PathListSeparator)+os.Getenv("PATH"))
	shell.Env = append(shell.Env, caches...)
	output, err := shell.CombinedOutput()
	GinkgoWriter.Write(output)
	Expect(err).NotTo(HaveOccurred(), string(output))
}

// caches of the go command stay where they are, whatever home is.
var caches []string

// built are the tools that the documents call, beside our programs.
func built(ctx context.Context, root string) {
	GinkgoHelper()
	_, err := chart.Build(ctx, root)
	Expect(err).NotTo(HaveOccurred())
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(root, ".local", "bin", "kubectl-evenkeel"), "./cmd/kubectl-evenkeel")
	build.Dir = root
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.CommandContext(ctx, "go", "env", name).Output()
		Expect(err).NotTo(HaveOccurred())
		caches = append(caches, name+"="+strings.TrimSpace(string(value)))
	}
}

// yes answers whatever is asked.
type yes struct{}

func (yes) Read(into []byte) (int, error) { return copy(into, "y\n"), nil }
