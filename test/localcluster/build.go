// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	controlPlaneBinary = "evenkeel-localcluster"
	kwokBinary         = "evenkeel-kwok"
)

// A program is what is built in a Go module of its own, or in ours.
type program struct {
	// binary is its path in .local/bin, from there.
	binary string
	folder string
	what   string
	// version is the module whose version is stamped into the binary; empty for none.
	version string
	// pkg is the package to build; default that of the folder.
	pkg string
	// modfile is what to build with in place of go.mod, relative to the folder.
	modfile string
	// links are other names of the binary, beside it.
	links []string
}

// programs are those of each cluster, and nodePrograms those of one with real machines.
var (
	programs = []program{
		{binary: controlPlaneBinary, folder: controlPlane, what: "Kubernetes control plane", version: kubernetesModule, links: []string{"kubectl"}},
		{binary: kwokBinary, folder: "hack/localcluster/kwok", what: "kwok"},
	}
	nodePrograms = []program{
		{binary: nodesDir + "/kubelet", folder: "hack/localcluster/kubelet", what: "kubelet", version: kubernetesModule},
		{binary: nodesDir + "/containerd", folder: "hack/localcluster/containerd", what: "containerd", pkg: containerd + "/containerd"},
		{binary: nodesDir + "/containerd-shim-runc-v2", folder: "hack/localcluster/containerd", what: "containerd's shim", pkg: containerd + "/containerd-shim-runc-v2"},
		{binary: nodesDir + "/runc", folder: "hack/localcluster/runc", what: "runc", pkg: "github.com/opencontainers/runc"},
		{binary: nodesDir + "/bridge", folder: "hack/localcluster/cni", what: "CNI plugin bridge", pkg: cni + "/main/bridge"},
		{binary: nodesDir + "/loopback", folder: "hack/localcluster/cni", what: "CNI plugin loopback", pkg: cni + "/main/loopback"},
		{binary: nodesDir + "/host-local", folder: "hack/localcluster/cni", what: "CNI plugin host-local", pkg: cni + "/ipam/host-local"},
	}
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	controlPlane     = "hack/localcluster"
	containerd       = "github.com/containerd/containerd/v2/cmd"
	cni              = "github.com/containernetworking/plugins/plugins"
	// nodesDir is the folder in .local/bin of what real machines run.
	nodesDir = "nodes"
)

// Build builds the binaries of clusters into .local/bin of the repository at root (if empty, it is
// found), unless they are up to date. Without a build cache, that takes minutes. One process builds
// at a time; the others wait.
func Build(ctx context.Context, root string, out io.Writer) error {
	return build(ctx, Options{Root: root, Out: out}, programs)
}

func build(ctx context.Context, o Options, programs []program) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	programs = ofVersion(programs, o.Kubernetes)
	if upToDate(o.Root, programs) {
		return nil
	}
	lock, err := waitLock(ctx, filepath.Join(binDir(o.Root), ".build.lock"), func() {
		fmt.Fprintln(o.Out, "another process builds; waiting for it")
	})
	if err != nil {
		return err
	}
	defer lock.release()
	for _, p := range programs {
		if err := p.buildBinary(ctx, o.Root, o.Out); err != nil {
			return err
		}
		for _, link := range p.links {
			if err := linkBinary(filepath.Join(binDir(o.Root), filepath.Dir(p.binary), link), filepath.Base(p.binary)); err != nil {
				return err
			}
		}
	}
	return nil
}

func upToDate(root string, programs []program) bool {
	for _, p := range programs {
		if hash, err := p.sourceHash(root); err != nil || !p.isBuilt(root, hash) {
			return false
		}
		for _, link := range p.links {
			if _, err := os.Stat(filepath.Join(binDir(root), filepath.Dir(p.binary), link)); err != nil {
				return false
			}
		}
	}
	return true
}

// ofVersion returns programs with the control plane of a version of Kubernetes.
func ofVersion(programs []program, minor string) []program {
	if minor == "" {
		return programs
	}
	programs = slices.Clone(programs)
	for i := range programs {
		if p := &programs[i]; p.folder == controlPlane {
			p.binary, p.what, p.modfile = versionDir(minor)+"/"+p.binary, p.what+" "+minor, "versions/"+minor+".mod"
		}
	}
	return programs
}

// versionDir is the folder in .local/bin of the control plane of a version of Kubernetes.
func versionDir(minor string) string { return "kubernetes-" + minor }

func (p program) buildBinary(ctx context.Context, root string, out io.Writer) error {
	hash, err := p.sourceHash(root)
	if err != nil || p.isBuilt(root, hash) {
		return err
	}
	flags, err := p.linkFlags(ctx, root)
	if err != nil {
		return err
	}
	target := filepath.Join(binDir(root), p.binary)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	fresh := target + ".new"
	start := time.Now()
	if err := p.compile(ctx, root, flags, fresh, out); err != nil {
		return fmt.Errorf("build %s: %w", p.what, err)
	}
	if err := os.Rename(fresh, target); err != nil {
		return fmt.Errorf("install %s: %w", p.what, err)
	}
	fmt.Fprintf(out, "built %s in %.1fs\n", p.what, time.Since(start).Seconds())
	return os.WriteFile(p.stampFile(root), []byte(hash), 0o644)
}

func (p program) stampFile(root string) string {
	return filepath.Join(binDir(root), filepath.Dir(p.binary), "."+filepath.Base(p.binary)+".stamp")
}

func (p program) isBuilt(root, hash string) bool {
	stamp, err := os.ReadFile(p.stampFile(root))
	if err != nil || string(stamp) != hash {
		return false
	}
	_, err = os.Stat(filepath.Join(binDir(root), p.binary))
	return err == nil
}

// sourceHash identifies what the binary is built from: the files of its folder and the compiler. It
// assumes the compiler of this process, because asking for the version takes longer than everything
// else.
func (p program) sourceHash(root string) (string, error) {
	files, err := filepath.Glob(filepath.Join(root, p.folder, "*.*"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("find sources of %s in %s: %w", p.what, p.folder, os.ErrNotExist)
	}
	if p.modfile != "" {
		mod := filepath.Join(root, p.folder, p.modfile)
		files = append(files, mod, strings.TrimSuffix(mod, ".mod")+".sum")
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH, buildFormat)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read source of %s: %w", p.what, err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(file), len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// buildFormat changes when the build flags of binaries change.
const buildFormat = "2"

// linkFlags strips the binary and stamps the version as Kubernetes' own release builds do.
func (p program) linkFlags(ctx context.Context, root string) (string, error) {
	flags := "-s -w"
	if p.version == "" {
		return flags, nil
	}
	output, err := goCommand(ctx, filepath.Join(root, p.folder), "list", "-modfile="+p.modfile, "-m", "-f", "{{.Version}}", p.version)
	if err != nil {
		return "", fmt.Errorf("find version of %s: %w\n%s", p.version, err, output)
	}
	version := strings.TrimSpace(string(output))
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 3 {
		return "", fmt.Errorf("find version of %s: %q is none", p.version, version)
	}
	for _, in := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitCommit=unknown",
			in, version, parts[0], parts[1])
	}
	return flags, nil
}

// roomy has the compiler collect garbage less often, which takes a tenth of its time, as long as it
// stays below a limit. The caller's environment takes precedence.
var roomy = []string{"GOGC=400", "GOMEMLIMIT=3GiB"}

// goCommand ignores a workspace, and flags that the caller's environment sets for our own module.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return newGoCommand(ctx, dir, args...).CombinedOutput()
}

func newGoCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(roomy, os.Environ(), []string{"GOWORK=off", "GOFLAGS="})
	return cmd
}

// compile runs go build, and prints every ten seconds how many of the packages are compiled.
func (p program) compile(ctx context.Context, root, linkFlags, target string, out io.Writer) error {
	dir, pkg := filepath.Join(root, p.folder), cmp.Or(p.pkg, ".")
	progress := &progress{what: "building " + p.what, out: out, start: time.Now()}
	fmt.Fprintf(out, "%s ...\n", progress.what)
	defer progress.report(10 * time.Second)()
	list, err := goCommand(ctx, dir, "list", "-deps", "-modfile="+p.modfile, "-f={{if .Stale}}{{.ImportPath}}{{end}}", pkg)
	if err != nil {
		return fmt.Errorf("list packages: %w\n%s", err, bytes.TrimSpace(list))
	}
	progress.setPackages(strings.Fields(string(list)))
	cmd := newGoCommand(ctx, dir, "build", "-v", "-buildvcs=false", "-modfile="+p.modfile, "-ldflags="+linkFlags, "-o", target, pkg)
	cmd.Stdout, cmd.Stderr = progress, progress
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, bytes.TrimSpace(progress.otherOutput()))
	}
	return nil
}

// linkBinary makes link another name of a binary beside it.
func linkBinary(link, binary string) error {
	if target, err := os.Readlink(link); err == nil && target == binary {
		return nil
	}
	_ = os.Remove(link)
	if err := os.Symlink(binary, link); err != nil {
		return fmt.Errorf("link %s: %w", filepath.Base(link), err)
	}
	return nil
}
