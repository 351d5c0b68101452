// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The components of a cluster.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

// DefaultName is the name of a cluster unless one is given.
const DefaultName = "evenkeel"

var (
	// AllComponents make a cluster that runs pods. They are in the order of their start.
	AllComponents = []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
	// APIServerOnly is enough if only an API is needed.
	APIServerOnly = []string{Etcd, APIServer}
)

// Options define which cluster to run, and how.
type Options struct {
	// Name of the cluster, a DNS label. Default: DefaultName.
	Name string
	// Root of the repository. If empty, it is found upwards from the working directory.
	Root string
	// Kubernetes is the minor version of the control plane, such as 1.34: one of those in
	// hack/localcluster/versions. Default: $KUBERNETES, else that of hack/localcluster/go.mod.
	Kubernetes string
	// Components to run; default AllComponents.
	Components []string
	// ExtraArgs are appended to the command line of a component, so they override ours.
	ExtraArgs map[string][]string
	// Audit writes one JSON line per request to Cluster.AuditLog, at level Metadata.
	Audit bool
	// Out receives progress messages; nil discards them.
	Out io.Writer
	// Detached processes outlive the caller. Others end with it, however it ends.
	Detached bool
	// Fresh starts without data of an earlier run, which may have been killed before it could reset
	// its cluster.
	Fresh bool
	// RealNodes lets the cluster have machines with real kubelets, which [Cluster.RunMachines] runs.
	RealNodes bool
	// UnsafeNoFsync makes etcd faster. A crash of the machine may then corrupt the data.
	UnsafeNoFsync bool
}

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if !validName.MatchString(o.Name) {
		return o, fmt.Errorf("name cluster %q: want a DNS label (a-z, 0-9, -)", o.Name)
	}
	if len(o.Components) == 0 {
		o.Components = AllComponents
	}
	for _, name := range o.Components {
		if !slices.Contains(AllComponents, name) {
			return o, fmt.Errorf("unknown component %q: want some of %s", name, strings.Join(AllComponents, ", "))
		}
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Root == "" {
		root, err := FindRoot()
		if err != nil {
			return o, err
		}
		o.Root = root
	}
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return o, err
	}
	o.Root = root
	o.Kubernetes, err = version(root, cmp.Or(o.Kubernetes, os.Getenv("KUBERNETES")))
	return o, err
}

var required = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v(1\.\d+)\.`)

// version returns a minor version of Kubernetes if a control plane of it can be built; empty for that
// of go.mod.
func version(root, minor string) (string, error) {
	if minor == "" {
		return "", nil
	}
	folder := filepath.Join(root, controlPlane)
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return "", err
	}
	found := required.FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("go.mod of %s requires no %s", controlPlane, kubernetesModule)
	}
	if minor == string(found[1]) {
		return "", nil
	}
	files, err := filepath.Glob(filepath.Join(folder, "versions", "*.mod"))
	if err != nil {
		return "", err
	}
	all := []string{string(found[1])}
	for _, file := range files {
		all = append(all, strings.TrimSuffix(filepath.Base(file), ".mod"))
	}
	if slices.Sort(all); !slices.Contains(all, minor) {
		return "", fmt.Errorf("no Kubernetes %q: want one of %s", minor, strings.Join(all, ", "))
	}
	return minor, nil
}

func (o Options) hasComponent(component string) bool { return slices.Contains(o.Components, component) }

func (o Options) clustersDir() string { return filepath.Join(o.Root, ".local", "clusters") }

func (o Options) clusterDir() string { return filepath.Join(o.clustersDir(), o.Name) }

func binDir(root string) string { return filepath.Join(root, ".local", "bin") }

// controlPlaneDir has the control plane and its kubectl.
func (o Options) controlPlaneDir() string {
	if o.Kubernetes == "" {
		return binDir(o.Root)
	}
	return filepath.Join(binDir(o.Root), versionDir(o.Kubernetes))
}

const modulePath = "github.com/evenkeel/evenkeel"

// FindRoot returns the repository of the working directory: the nearest folder upwards that
// contains our go.mod.
func FindRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		switch {
		case err == nil && slices.Contains(strings.Split(string(text), "\n"), "module "+modulePath):
			return dir, nil
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return "", fmt.Errorf("find repository: %w", err)
		case dir == filepath.Dir(dir):
			return "", fmt.Errorf("find repository: no go.mod of %s in or above %s", modulePath, start)
		}
	}
}
