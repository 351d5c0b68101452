// SPDX-License-Identifier: Apache-2.0

// Package install checks that every way to install renders the same objects, that a real API server
// accepts them, and that our binary works with them.
package install

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	syaml "sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/test/chart"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	root       = "../.."
	everything = "charts/evenkeel/ci/everything-values.yaml"
	keep       = "helm.sh/resource-policy"
)

var (
	tools   chart.Tools
	cluster *localcluster.Cluster
)

func TestInstall(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Install")
}

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	tools, err = chart.Build(ctx, root)
	Expect(err).NotTo(HaveOccurred())
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		Name: "install", Components: localcluster.APIServerOnly, Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true, Audit: true,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Reset()).To(Succeed()) })
})

// template is the chart with these arguments of helm.
func template(ctx context.Context, args ...string) []byte {
	GinkgoHelper()
	text, err := tools.Template(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
	return text
}

// objects of a stream of YAML, by kind, namespace and name; what there must not be twice.
func objects(text []byte) map[string]*unstructured.Unstructured {
	GinkgoHelper()
	all := map[string]*unstructured.Unstructured{}
	for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		Expect(err).NotTo(HaveOccurred())
		o := &unstructured.Unstructured{}
		Expect(syaml.Unmarshal(document, &o.Object)).To(Succeed())
		if len(o.Object) == 0 {
			continue
		}
		name := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		Expect(all).NotTo(HaveKey(name))
		all[name] = o
	}
}

// kubectl runs it on the cluster as administrator.
func kubectl(ctx context.Context, input []byte, args ...string) (string, error) {
	return tool(ctx, cluster.Kubectl(), input, args...)
}

// helm runs it on the cluster as administrator.
func helm(ctx context.Context, args ...string) (string, error) {
	return tool(ctx, root+"/.local/bin/helm", nil, args...)
}

func tool(ctx context.Context, binary string, input []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...)
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
