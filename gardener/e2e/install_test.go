// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/utils/imagevector"

	"github.com/evenkeel/evenkeel/gardener/charts"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	extensionNamespace = "extension-evenkeel"
	extensionProgram   = "gardener-extension-evenkeel"
	admissionNamespace = "extension-admission-evenkeel"
	admissionProgram   = "gardener-extension-admission-evenkeel"
	extensionLabel     = v1beta1constants.LabelExtensionPrefix + "evenkeel"
	// imageVersion is stamped into the extension. Its image of machine-controller-manager has the same.
	imageVersion = "v0.0.0-e2e"
	ours         = evenkeel + ":" + imageVersion
	// newer is an image that an operator sets by the image vector of the extension.
	newer = evenkeel + ":v0.0.1-e2e"
)

func init() { images[ours], images[newer] = images[evenkeel], images[evenkeel] }

// overwriteImages has what is started from now on read an image vector with the newer image, as the chart does with its value.
func overwriteImages() {
	GinkgoHelper()
	repository, tag, _ := strings.Cut(newer, ":")
	path := filepath.Join(GinkgoT().TempDir(), "images.yaml")
	vector := fmt.Sprintf("images: [{name: machine-controller-manager, repository: %s, tag: %s}]", repository, tag)
	Expect(os.WriteFile(path, []byte(vector), 0o600)).To(Succeed())
	GinkgoT().Setenv(imagevector.OverrideEnv, path)
}

// installExtension starts the extension as gardenlet does with its chart.
func installExtension(ctx context.Context) *localcluster.Process {
	GinkgoHelper()
	return installProgram(ctx, extensionProgram, extensionNamespace, charts.Extension)
}

// installProgram has the API server know the account of a chart, and starts the program with the chart's arguments.
func installProgram(ctx context.Context, program, namespace string, folders ...string) *localcluster.Process {
	GinkgoHelper()
	arguments := installObjects(ctx, program, namespace, folders...)
	compile(ctx, program, "./cmd/"+program)
	return startProgram(ctx, program, namespace, program, must(seedCluster.Port(program)), arguments)
}

// installObjects applies what a program needs of its charts, and returns the arguments of its container.
func installObjects(ctx context.Context, program, namespace string, folders ...string) (arguments []string) {
	GinkgoHelper()
	Expect(client.IgnoreAlreadyExists(seed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))).To(Succeed())
	for _, folder := range folders {
		rendered := render(folder, program, namespace)
		for document := range strings.SplitSeq(rendered.FileContent("access.yaml"), "\n---\n") {
			object := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal([]byte(document), object)).To(Succeed())
			Expect(createOrReplace(ctx, seed, object)).To(Succeed())
		}
		installReserves(ctx, rendered)
		if text := rendered.FileContent("deployment.yaml"); text != "" {
			var d appsv1.Deployment
			Expect(yaml.Unmarshal([]byte(text), &d)).To(Succeed())
			arguments = d.Spec.Template.Spec.Containers[0].Args
		}
	}
	return arguments
}

// startProgram starts a replica of a program, whose webhooks are reached at a port. A process of this machine has another address than a
// pod, and listens on other ports.
func startProgram(ctx context.Context, program, namespace, replica string, address int, arguments []string) *localcluster.Process {
	GinkgoHelper()
	process, err := seedCluster.Run(replica, binary(program), slices.Concat(arguments, []string{
		"--kubeconfig=" + must(seedCluster.AccountKubeconfig(ctx, namespace, program)),
		"--webhook-config-mode=url", fmt.Sprintf("--webhook-config-url=127.0.0.1:%d", address), "--webhook-config-server-host=127.0.0.1",
		fmt.Sprintf("--webhook-config-server-port=%d", must(seedCluster.Port(replica))), "--webhook-config-cert-dir=" + GinkgoT().TempDir(),
		"--metrics-bind-address=127.0.0.1:" + strconv.Itoa(must(seedCluster.Port(replica+"/metrics"))),
		"--health-bind-address=127.0.0.1:" + strconv.Itoa(must(seedCluster.Port(replica+"/health"))),
	})...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(process.Stop()).To(Succeed()) })
	awaitReady(ctx, replica)
	return process
}

// installReserves brings Reserves to the seed, and the roles for them. They go with the process: no other story has them.
func installReserves(ctx context.Context, rendered *chartrenderer.RenderedChart) {
	GinkgoHelper()
	for _, template := range []string{"crd-reserves.yaml", "reserves.yaml"} {
		for document := range strings.SplitSeq(rendered.FileContent(template), "\n---\n") {
			object := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal([]byte(document), object)).To(Succeed())
			if object.GetKind() == "" {
				continue // the comment before the first
			}
			Expect(createOrReplace(ctx, seed, object)).To(Succeed())
			if object.GetKind() == "CustomResourceDefinition" {
				c := seed
				DeferCleanup(func(ctx context.Context) {
					Expect(client.IgnoreNotFound(c.Delete(ctx, object))).To(Succeed())
					Eventually(func() error { return c.Get(ctx, client.ObjectKeyFromObject(object), object) }).WithContext(ctx).Should(MatchError(ContainSubstring("not found")))
				})
			}
		}
	}
}

// render is what gardenlet and gardener-operator do with a chart. The seed is the garden, too.
func render(folder, account, namespace string) *chartrenderer.RenderedChart {
	GinkgoHelper()
	values := map[string]any{"gardener": map[string]any{"virtualCluster": map[string]any{
		"namespace": namespace, "serviceAccount": map[string]any{"name": account, "namespace": namespace},
	}}}
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.34.0"})
	return must(renderer.RenderEmbeddedFS(charts.Files, folder, "evenkeel", namespace, values))
}

// compile builds a program that this module knows.
func compile(ctx context.Context, program, pkg string) {
	GinkgoHelper()
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-X github.com/evenkeel/evenkeel/internal/version.stamp="+imageVersion, "-o", binary(program), pkg)
	build.Dir = filepath.Join(must(localcluster.FindRoot()), "gardener")
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
}

// awaitReady waits until the webhooks of a program are served.
func awaitReady(ctx context.Context, program string) {
	GinkgoHelper()
	url := fmt.Sprintf("http://127.0.0.1:%d/readyz", must(seedCluster.Port(program+"/health")))
	Eventually(func() (int, error) {
		response, err := http.Get(url)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}).WithContext(ctx).Should(Equal(http.StatusOK))
}
