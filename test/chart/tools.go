// SPDX-License-Identifier: Apache-2.0

// Package chart renders the Helm chart in charts/evenkeel and the folders of kubernetes/deploy, so
// that they agree.
package chart

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kubernetes is the version for which charts are rendered.
const Kubernetes = "1.36.0"

// Namespace contains the accounts and processes of the rendered folders.
const Namespace = "kube-system"

// Tools are helm and kustomize, in the versions of hack/install, in .local/bin of the repository at
// root.
type Tools struct{ root string }

// Build builds the tools unless they are up to date. Without a build cache, that takes minutes.
func Build(ctx context.Context, root string) (Tools, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return Tools{}, fmt.Errorf("find repository: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(root, ".local", "bin")+"/",
		"helm.sh/helm/v3/cmd/helm", "sigs.k8s.io/kustomize/kustomize/v5")
	cmd.Dir = filepath.Join(root, "hack", "install")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return Tools{}, fmt.Errorf("build helm and kustomize: %w\n%s", err, out)
	}
	return Tools{root}, nil
}

// Template renders the chart as a release named evenkeel.
func (t Tools) Template(ctx context.Context, args ...string) ([]byte, error) {
	return t.run(ctx, "helm", append([]string{"template", "evenkeel", "charts/evenkeel", "--namespace", Namespace, "--kube-version", Kubernetes}, args...)...)
}

// Lint returns helm's complaints about the chart.
func (t Tools) Lint(ctx context.Context, args ...string) ([]byte, error) {
	return t.run(ctx, "helm", append([]string{"lint", "charts/evenkeel", "--strict", "--kube-version", Kubernetes}, args...)...)
}

// Kustomize builds a folder.
func (t Tools) Kustomize(ctx context.Context, folder string) ([]byte, error) {
	return t.run(ctx, "kustomize", "build", folder)
}

// run returns standard output. An error contains what was printed to standard error.
func (t Tools) run(ctx context.Context, tool string, args ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(t.root, ".local", "bin", tool), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.root, &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s%s", tool, strings.Join(args, " "), err, out.Bytes(), errs.Bytes())
	}
	return out.Bytes(), nil
}
