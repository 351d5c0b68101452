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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/chartrenderer"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/charts"
	"github.com/evenkeel/evenkeel/internal/localcluster"
	"github.com/evenkeel/evenkeel/internal/rights"
)

const (
	extensionNamespace = "extension-evenkeel"
	extensionProgram   = "gardener-extension-evenkeel"
	admissionNamespace = "extension-admission-evenkeel"
	admissionProgram   = "gardener-extension-admission-evenkeel"
	extensionLabel     = v1beta1constants.LabelExtensionPrefix + "evenkeel"
	// imageVersion is stamped into the extension. Its image of machine-controller-manager has the same.
	imageVersion = "v0.0.0-e2e"
)

func init() { images[evenkeel+":"+imageVersion] = images[evenkeel] }

// installProgram has the API server know the account of a chart, and starts the program with the chart's arguments. A process of this
// machine is reached by another address, and listens on other ports.
func installProgram(ctx context.Context, program, namespace string, folders ...string) *localcluster.Process {
	GinkgoHelper()
	Expect(client.IgnoreAlreadyExists(seed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))).To(Succeed())
	var arguments []string
	for _, folder := range folders {
		rendered := render(folder, program, namespace)
		for document := range strings.SplitSeq(rendered.FileContent("access.yaml"), "\n---\n") {
			object := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal([]byte(document), object)).To(Succeed())
			Expect(createOrReplace(ctx, seed, object)).To(Succeed())
		}
		if text := rendered.FileContent("deployment.yaml"); text != "" {
			var d appsv1.Deployment
			Expect(yaml.Unmarshal([]byte(text), &d)).To(Succeed())
			arguments = d.Spec.Template.Spec.Containers[0].Args
		}
	}
	compile(ctx, program)
	port := must(seedCluster.Port(program))
	process, err := seedCluster.Run(program, binary(program), slices.Concat(arguments, []string{
		"--kubeconfig=" + must(seedCluster.AccountKubeconfig(ctx, namespace, program)),
		"--webhook-config-mode=url", fmt.Sprintf("--webhook-config-url=127.0.0.1:%d", port), "--webhook-config-server-host=127.0.0.1",
		fmt.Sprintf("--webhook-config-server-port=%d", port), "--webhook-config-cert-dir=" + GinkgoT().TempDir(),
		"--metrics-bind-address=127.0.0.1:" + strconv.Itoa(must(seedCluster.Port(program+"-metrics"))),
		"--health-bind-address=127.0.0.1:" + strconv.Itoa(must(seedCluster.Port(program+"-health"))),
	})...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(process.Stop()).To(Succeed()) })
	awaitReady(ctx, program)
	return process
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

// compile builds a program of this module.
func compile(ctx context.Context, program string) {
	GinkgoHelper()
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-X github.com/evenkeel/evenkeel/internal/version.stamp="+imageVersion, "-o", binary(program), "./cmd/"+program)
	build.Dir = filepath.Join(must(localcluster.FindRoot()), "gardener")
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
}

// awaitReady waits until the webhooks of a program are served.
func awaitReady(ctx context.Context, program string) {
	GinkgoHelper()
	url := fmt.Sprintf("http://127.0.0.1:%d/readyz", must(seedCluster.Port(program+"-health")))
	Eventually(func() (int, error) {
		response, err := http.Get(url)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}).WithContext(ctx).Should(Equal(http.StatusOK))
}

// refusals are the requests of an account that lacked a right.
func refusals(account string) []rights.Right {
	GinkgoHelper()
	log := must(os.Open(seedCluster.AuditLog()))
	defer log.Close()
	requests := must(rights.Read(log, account))
	Expect(requests.Used).NotTo(BeEmpty())
	return requests.Refused
}

// enable is what gardenlet does for a Shoot with the extension, before it writes the control plane.
func (s *shoot) enable(ctx context.Context, config string) {
	GinkgoHelper()
	s.label(ctx, true)
	ex := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "evenkeel"}}
	Expect(client.IgnoreNotFound(seed.Get(ctx, client.ObjectKeyFromObject(ex), ex))).To(Succeed())
	ex.Spec = extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "evenkeel", ProviderConfig: &runtime.RawExtension{Raw: []byte(config)}}}
	metav1.SetMetaDataAnnotation(&ex.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
	if ex.ResourceVersion == "" {
		Expect(seed.Create(ctx, ex)).To(Succeed())
	} else {
		Expect(seed.Update(ctx, ex)).To(Succeed())
	}
	Eventually(func(g Gomega) {
		ex := s.extension(ctx)
		g.Expect(ex.Annotations).NotTo(HaveKey(v1beta1constants.GardenerOperation))
		g.Expect(ex.Status.ObservedGeneration).To(Equal(ex.Generation))
		g.Expect(ex.Status.LastOperation).To(HaveField("State", gardencorev1beta1.LastOperationStateSucceeded))
	}).WithContext(ctx).Should(Succeed())
}

func (s *shoot) label(ctx context.Context, enabled bool) {
	GinkgoHelper()
	namespace := &corev1.Namespace{}
	Expect(seed.Get(ctx, client.ObjectKey{Name: s.namespace}, namespace)).To(Succeed())
	patch := client.MergeFrom(namespace.DeepCopy())
	if delete(namespace.Labels, extensionLabel); enabled {
		namespace.Labels[extensionLabel] = "true"
	}
	Expect(seed.Patch(ctx, namespace, patch)).To(Succeed())
}

func (s *shoot) extension(ctx context.Context) *extensionsv1alpha1.Extension {
	GinkgoHelper()
	ex := &extensionsv1alpha1.Extension{}
	Expect(seed.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "evenkeel"}, ex)).To(Succeed())
	return ex
}

// gardenletReconciles is what gardenlet does after the Extensions: the Deployment, the Worker, and the wait for it.
func (s *shoot) gardenletReconciles(ctx context.Context) {
	GinkgoHelper()
	s.deploy(ctx, 1)
	s.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) {
		for i := range w.Pools {
			w.Pools[i].Annotations = map[string]string{}
		}
	})
	Expect(s.reconciled(ctx)).To(Succeed())
}

func (s *shoot) manager(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	Expect(seed.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "machine-controller-manager"}, d)).To(Succeed())
	return d
}

func imageOf(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image }

// reserve counts the machines in reserve.
func (s *shoot) reserve(ctx context.Context) (n int) {
	GinkgoHelper()
	for _, m := range s.machines(ctx) {
		if m.Annotations[machine.ReserveAnnotation] != "" {
			n++
		}
	}
	return n
}

func config(pools string) string {
	return `{"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig","pools":` + pools + `}`
}

var _ = Describe("The extension", func() {
	It("has one Shoot run Evenkeel, keeps its reserve, and leaves without the loss of a machine", func(ctx context.Context) {
		process := installProgram(ctx, extensionProgram, extensionNamespace, charts.Extension)
		other := &shoot{namespace: "shoot--local--other", image: stock}
		Expect(seed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.namespace}})).To(Succeed())
		other.secret(ctx, v1beta1constants.SecretNameGenericTokenKubeconfig, "kubeconfig")
		other.deploy(ctx, 1)
		untouched := other.manager(ctx)

		By("a Shoot runs stock, and is given the extension")
		s := newShoot(ctx, "extension", stock, newPool("pool", 3, 9, "a"))
		Expect(s.reconciled(ctx)).To(Succeed())
		s.settles(ctx, 3)
		before := s.names(ctx)
		s.cluster.Shoot.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Name: "pool", Minimum: 3, Maximum: 9}}
		s.saveCluster(ctx)
		s.enable(ctx, config(`[{"name":"pool","excess":2}]`))
		Expect(imageOf(s.manager(ctx))).To(Equal(stock), "until gardenlet writes")
		s.gardenletReconciles(ctx)
		Expect(imageOf(s.manager(ctx))).To(Equal(evenkeel + ":" + imageVersion))
		s.settles(ctx, 5)
		Expect(s.reserve(ctx)).To(Equal(2))
		Expect(s.gone(ctx, before)).To(Succeed())

		By("gardenlet writes again, and nothing changes")
		was := s.manager(ctx)
		s.gardenletReconciles(ctx)
		Expect(s.manager(ctx).Spec).To(Equal(was.Spec))
		Expect(s.reserve(ctx)).To(Equal(2))

		By("a wrong providerConfig comes past admission")
		s.enable(ctx, config(`[{"name":"pol","excess":2}]`))
		Expect(s.extension(ctx).Status.Conditions).To(ConsistOf(And(HaveField("Status", gardencorev1beta1.ConditionFalse), HaveField("Message", ContainSubstring("write one of pool")))))
		s.gardenletReconciles(ctx)
		Expect(s.reserve(ctx)).To(Equal(2))

		By("the owner wants less")
		s.enable(ctx, config(`[{"name":"pool","excess":1}]`))
		s.gardenletReconciles(ctx)
		s.settles(ctx, 4)
		Expect(s.reserve(ctx)).To(Equal(1))

		By("the webhook is down when gardenlet writes: the Shoot runs stock, and all its machines stay")
		machines := s.names(ctx)
		Expect(process.Stop()).To(Succeed())
		s.deploy(ctx, 1)
		Expect(imageOf(s.manager(ctx))).To(Equal(stock))
		s.settles(ctx, 4)
		Expect(s.gone(ctx, machines)).To(Succeed())
		Expect(process.Start()).To(Succeed())
		awaitReady(ctx, extensionProgram)
		s.gardenletReconciles(ctx)
		Expect(imageOf(s.manager(ctx))).To(Equal(evenkeel + ":" + imageVersion))
		s.settles(ctx, 4)
		Eventually(func() int { return s.reserve(ctx) }).WithContext(ctx).Should(Equal(1))

		By("the owner removes the extension")
		s.label(ctx, false)
		var serving []string
		for _, m := range s.serving(ctx) {
			serving = append(serving, m.Name)
		}
		Expect(serving).To(HaveLen(3))
		ex := s.extension(ctx)
		Expect(seed.Delete(ctx, ex)).To(Succeed())
		s.deploy(ctx, 1)
		Eventually(func() error { return seed.Get(ctx, client.ObjectKeyFromObject(ex), ex) }).WithContext(ctx).Should(MatchError(ContainSubstring("not found")))
		Expect(imageOf(s.manager(ctx))).To(Equal(stock))
		Expect(s.manager(ctx).Spec.Template.Spec.Containers[0].Command).NotTo(ContainElement(ContainSubstring("accounting")))
		Expect(s.reserve(ctx)).To(BeZero())
		Expect(s.deployments(ctx)).To(HaveEach(HaveField("Annotations", Not(HaveKey(machine.DrainReserveAnnotation)))))
		s.gardenletReconciles(ctx)
		s.settles(ctx, 3)
		Expect(s.gone(ctx, serving)).To(Succeed())

		By("no other Shoot was touched, and no right was missing")
		Expect(other.manager(ctx)).To(Equal(untouched))
		Expect(refusals(extensionNamespace + "/" + extensionProgram)).To(BeEmpty())
	})
})

var _ = Describe("The admission component", func() {
	It("refuses a wrong providerConfig where Shoots are written", func(ctx context.Context) {
		shootKind(ctx)
		installProgram(ctx, admissionProgram, admissionNamespace, charts.AdmissionRuntime, charts.AdmissionApplication)
		Eventually(func() error { return seed.Create(ctx, written("wrong", 10, true), client.DryRunAll) }).WithContext(ctx).
			Should(MatchError(And(ContainSubstring("spec.extensions[0].providerConfig.pools[0].excess"), ContainSubstring("write at most 9"))))
		Expect(seed.Create(ctx, written("right", 2, true))).To(Succeed())
		Expect(seed.Create(ctx, written("without", 10, false))).To(Succeed(), "a Shoot without the extension is not sent")
		Expect(refusals(admissionNamespace + "/" + admissionProgram)).To(BeEmpty())
	})
})

// shootKind has the API server take Shoots. gardener-apiserver is not there: a CRD stands for it.
func shootKind(ctx context.Context) {
	GinkgoHelper()
	crd := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shoots.core.gardener.cloud, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: core.gardener.cloud
  names: {kind: Shoot, listKind: ShootList, plural: shoots, singular: shoot}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`), crd)).To(Succeed())
	Expect(createOrReplace(ctx, seed, crd)).To(Succeed())
	Eventually(func() error { return seed.Create(ctx, written("probe", 2, false), client.DryRunAll) }).WithContext(ctx).Should(Succeed())
}

// written is a Shoot as an owner writes it, with the label that Gardener adds.
func written(name string, excess int, labelled bool) *unstructured.Unstructured {
	GinkgoHelper()
	shoot := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: %s, namespace: default}
spec:
  extensions:
  - {type: evenkeel, providerConfig: %s}
  provider: {type: local, workers: [{name: pool, minimum: 3, maximum: 9}]}
`, name, config(fmt.Sprintf(`[{"name":"pool","excess":%d}]`, excess))), shoot)).To(Succeed())
	if labelled {
		shoot.SetLabels(map[string]string{v1beta1constants.LabelExtensionExtensionTypePrefix + "evenkeel": "true"})
	}
	return shoot
}
