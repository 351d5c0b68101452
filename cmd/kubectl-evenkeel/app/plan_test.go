// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/app"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// kubeconfig leads to a scene.
const kubeconfig = `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "http://sim"}}], contexts: [{name: c, context: {cluster: c}}, {name: d, context: {cluster: c}}], current-context: c}`

// answer is the plugin with these arguments, and with something typed into it.
func (s scene) answer(in string, args ...string) (out string, err error) {
	GinkgoHelper()
	var stdout bytes.Buffer
	err = s.root(genericiooptions.IOStreams{In: strings.NewReader(in), Out: &stdout, ErrOut: &stdout}, args...).ExecuteContext(GinkgoT().Context())
	return stdout.String(), err
}

// root is the command line with these arguments and a kubeconfig for the scene.
func (s scene) root(streams genericiooptions.IOStreams, args ...string) *cobra.Command {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(path, []byte(kubeconfig), 0o600)).To(Succeed())
	root := app.RootOn(streams, s.ConfigFor("plugin"))
	root.SetArgs(append([]string{"--kubeconfig", path}, args...))
	return root
}

// written is how often the plugin has written.
func (s scene) written() (n int) {
	for _, w := range s.Writes() {
		if w.User == "plugin" {
			n++
		}
	}
	return n
}

func (s scene) drained(name string) bool {
	GinkgoHelper()
	d, err := versioned.NewForConfigOrDie(s.ConfigFor("writer")).MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(GinkgoT().Context(), name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return d.Annotations[v1alpha1.DrainReserveAnnotation] == "true"
}

const more = `{apiVersion: machine.sapcloud.io/v1alpha1, kind: MachineDeployment, metadata: {name: pool}, spec: {replicas: 2}}`

var _ = Describe("plan", func() {
	var s scene
	BeforeEach(func() {
		s = newScene(everything)
		s.pool("pool")
	})

	It("describes the effect of a change in words, and writes nothing", func() {
		out, err := s.answer(more, "plan", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(
			ContainSubstring("MachineDeployment default/pool: moving"),
			ContainSubstring("release machine pool-waits: it serves (Released)"),
			ContainSubstring("MachineDeployment default/pool: 2 of 2 machines serve, 1 in reserve"),
			ContainSubstring("new:        1 in reserve"),
			ContainSubstring("note: the schema of MachineDeployment could not be read"),
		))
		Expect(s.written()).To(BeZero())
	})

	It("prints the same as JSON and as YAML, for a file", func() {
		file := filepath.Join(GinkgoT().TempDir(), "change.yaml")
		Expect(os.WriteFile(file, []byte(more), 0o600)).To(Succeed())
		for format, read := range map[string]func([]byte, any) error{"json": json.Unmarshal, "yaml": func(raw []byte, into any) error { return yaml.Unmarshal(raw, into) }} {
			out, err := s.answer("", "plan", "-f", file, "-o", format)
			Expect(err).NotTo(HaveOccurred())
			var f struct {
				Plans []struct {
					Kind, Name, State string
					Steps             []struct{ Do, On string }
				}
				End struct {
					Rest               bool
					MachineDeployments []struct{ New struct{ Reserve int } }
				}
			}
			Expect(read([]byte(out), &f)).To(Succeed(), out)
			Expect(f.Plans).To(HaveLen(1))
			Expect(f.Plans[0].Steps).To(ContainElement(Equal(struct{ Do, On string }{"release", "pool-waits"})))
			Expect(f.End.Rest).To(BeTrue())
			Expect(f.End.MachineDeployments[0].New.Reserve).To(Equal(1))
		}
	})

	It("plays a new Reserve, which has the MachineDeployment keep more machines", func() {
		out, err := s.answer(`{apiVersion: autoscaling.evenkeel.dev/v1alpha1, kind: Reserve, metadata: {name: shop}, spec: {pools: {names: [pool]}, replicas: 3}}`, "plan", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(
			HavePrefix("Reserve default/shop: moving (1 of 3 machines are ready in 1 MachineDeployment)\n"),
			ContainSubstring("  annotation requested-excess none -> shop=3\n"),
			ContainSubstring("MachineDeployment default/pool: 1 of 1 machines serve, 3 in reserve"),
		))
		Expect(s.written()).To(BeZero())
	})

	It("predicts a new CapacityBuffer in any namespace, and reports that its reference does not exist", func() {
		s := newScene(slices.Concat(everything, sim.Shapes, []sim.Resource{{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Name: "capacitybuffers", Kind: "CapacityBuffer", Namespaced: true, Status: true}}))
		s.pool("pool")
		out, err := s.answer(`{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: web, namespace: shop}, spec: {provisioningStrategy: evenkeel.dev/reserved, podTemplateRef: {name: web}, replicas: 2}}`, "plan", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(
			HavePrefix("CapacityBuffer shop/web: blocked (see the condition ReadyForProvisioning: PodTemplate web does not exist in namespace shop)\n"),
			ContainSubstring("  To change that: create it, or correct spec.podTemplateRef.\n"),
		))
		Expect(s.written()).To(BeZero())
	})

	It("takes the namespace of a CapacityBuffer that names none from the target kubeconfig", func() {
		s := newScene(slices.Concat(everything, sim.Shapes, []sim.Resource{{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Name: "capacitybuffers", Kind: "CapacityBuffer", Namespaced: true, Status: true}}))
		s.pool("pool")
		path := running.Kubeconfig(s.Server, "plugin")
		config, err := clientcmd.LoadFromFile(path)
		Expect(err).NotTo(HaveOccurred())
		config.Contexts[config.CurrentContext].Namespace = "shop"
		Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
		out, err := s.answer(`{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: web}, spec: {provisioningStrategy: evenkeel.dev/reserved, podTemplateRef: {name: web}, replicas: 2}}`, "plan", "-f", "-", "--target-kubeconfig", path)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(HavePrefix("CapacityBuffer shop/web: "))
	})

	It("reports once that Reserves are not installed, and continues", func() {
		s := newScene(slices.DeleteFunc(slices.Clone(everything), func(r sim.Resource) bool { return r.Name == "reserves" }))
		s.pool("pool")
		out, err := s.answer(more, "plan", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("MachineDeployment default/pool: 2 of 2 machines serve, 1 in reserve"))
		Expect(strings.Count(out, "reserves: not installed in this cluster")).To(Equal(1))
	})

	DescribeTable("refuses",
		func(says, in string, args ...string) {
			_, err := s.answer(in, append([]string{"plan"}, args...)...)
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("an unknown format", `"xml" is invalid: use json or yaml`, "", "-o", "xml"),
		Entry("a mode that is none", "--balance-mode", "", "--balance-mode", "Always"),
		Entry("a file that is not there", "read nowhere.yaml: ", "", "-f", "nowhere.yaml"),
		Entry("nothing where there should be a change", "read -: the file is empty", "", "-f", "-"),
		Entry("a change that cannot be", "change MachineDeployment default/pool: ", strings.Replace(more, "replicas: 2", "replicas: two", 1), "-f", "-"),
		Entry("a change elsewhere", "MachineDeployment x/pool is not in namespace default", strings.Replace(more, "name: pool", "name: pool, namespace: x", 1), "-f", "-"),
	)
})

var _ = Describe("drain-reserve", func() {
	var s scene
	BeforeEach(func() {
		s = newScene(everything)
		s.pool("pool")
	})

	It("asks, and does nothing unless the answer is yes", func() {
		for _, in := range []string{"", "\n", "no\n", "yesterday\n"} {
			out, err := s.answer(in, "drain-reserve")
			Expect(out).To(ContainSubstring("Remove the reserve of 1 MachineDeployment, 1 machine in total? [y/N]"))
			Expect(err != nil).To(Equal(in == ""), "there was no answer")
			Expect(s.drained("pool")).To(BeFalse())
		}
		Expect(s.written()).To(BeZero())
		out, err := s.answer("y\n", "drain-reserve")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("Before you replace the image, wait until none is left"))
		Expect(s.drained("pool")).To(BeTrue())
		Expect(s.written()).To(Equal(1))
	})

	It("takes it back", func() {
		_, err := s.answer("", "drain-reserve", "--yes")
		Expect(err).NotTo(HaveOccurred())
		out, err := s.answer("", "drain-reserve", "--undo", "--yes")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("The controllers are restoring the reserves."))
		Expect(s.drained("pool")).To(BeFalse())
	})

	It("waits no longer than the timeout, and reports what is still pending", func() {
		out, err := s.answer("", "drain-reserve", "--yes", "--wait", "--timeout", "100ms")
		Expect(out).To(ContainSubstring("default/pool: applied excess 1, machines in reserve 1, machines in total 2, replicas 1"))
		Expect(err).To(MatchError(And(ContainSubstring("not finished after 100ms: default/pool: "), ContainSubstring("The controller continues"))))
		Expect(s.drained("pool")).To(BeTrue())
	})

	It("goes on waiting when the cluster answers again", func() {
		away := time.AfterFunc(300*time.Millisecond, func() { s.Down(true, "plugin") })
		back := time.AfterFunc(2500*time.Millisecond, func() { s.Down(false, "plugin") })
		defer func() { away.Stop(); back.Stop() }()
		out, err := s.answer("", "drain-reserve", "--yes", "--wait", "--timeout", "4s")
		Expect(err).To(MatchError(ContainSubstring("not finished after 4s: default/pool: ")))
		Expect(strings.Count(out, "Note: cannot read the progress, retrying: ")).To(Equal(1))
	})

	It("does not go on waiting for what it may not read", func() {
		forbid := time.AfterFunc(300*time.Millisecond, func() {
			s.Trouble("", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "plugin")
		})
		defer forbid.Stop()
		_, err := s.answer("", "drain-reserve", "--yes", "--wait", "--timeout", "20s")
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	})

	It("reports what is pending if the timeout ends while it reads", func() {
		_, err := s.answer("", "drain-reserve", "--yes", "--wait", "--timeout", "1ns")
		Expect(err).To(MatchError(ContainSubstring("not finished after 1ns: default/pool: ")))
	})

	It("reports that there are no MachineDeployments", func() {
		_, err := s.answer("", "drain-reserve", "--yes", "-n", "elsewhere")
		Expect(err).To(MatchError(ContainSubstring("no MachineDeployments found")))
	})
})

var _ = Describe("The flags of plan", func() {
	const split = "annotation applied-replicas none -> 3"

	DescribeTable("are the manager's for zones", func(contains, lacks string, args ...string) {
		s := newScene(everything)
		s.pool("pool")
		s.pool("other")
		out, err := s.answer(strings.Replace(more, "replicas: 2", "replicas: 3", 1), append([]string{"plan", "-f", "-"}, args...)...)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring(contains))
		Expect(out).NotTo(ContainSubstring(lacks))
	},
		Entry("growth stays where it is requested", "moving", split),
		Entry("--balance-mode splits it", split, "Nothing changes", "--balance-mode=ScaleUp"),
		Entry("--balance-similar-node-groups=false prevents that", "moving", split, "--balance-mode=ScaleUp", "--balance-similar-node-groups=false"),
		Entry("--nodes bounds it", "annotation bounds none -> 1:1:0", split, "--nodes=1:1:default.pool"),
	)

	It("are the manager's for zones where machines boot for long", func() {
		s := newScene(everything)
		s.pool("pool")
		s.pool("other")
		_, err := s.clusters.Control.MachineV1alpha1().Machines(fixture.Namespace).Patch(GinkgoT().Context(), "pool-serves", types.MergePatchType, []byte(`{"status":{"currentStatus":{"phase":"Pending"}}}`), metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
		grown := strings.Replace(more, "replicas: 2", "replicas: 3", 1)
		Expect(s.answer(grown, "plan", "-f", "-", "--balance-mode=ScaleUp")).NotTo(ContainSubstring("split growth"))
		s.publish("--balance-boot-patience=1ns")
		Expect(s.answer(grown, "plan", "-f", "-", "--balance-mode=ScaleUp")).To(ContainSubstring("split growth"))
	})

	It("are the manager's for waiting pods", func() {
		s := newScene(everything)
		s.pool("pool")
		core := kubernetes.NewForConfigOrDie(s.ConfigFor("writer")).CoreV1()
		for _, name := range []string{"a", "b"} { // there is room for one of them on the machine that serves
			world.CreateWithStatus(core.Pods(fixture.Namespace), fixture.Pod(name, func(p *corev1.Pod) {
				p.Spec.SchedulerName, p.Spec.Priority = corev1.DefaultSchedulerName, ptr.To[int32](-5)
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
			}))
		}
		bounded := strings.Replace(more, "metadata: {name: pool}, spec: {replicas: 2}", `metadata: {name: pool, annotations: {"evenkeel.machine.sapcloud.io/bounds": "1:5:1"}}`, 1)
		Expect(s.answer(bounded, "plan", "-f", "-")).To(ContainSubstring("2 of 2 machines serve"))
		Expect(s.answer(bounded, "plan", "-f", "-", "--instant-release=false")).NotTo(ContainSubstring("2 of 2 machines serve"))
		for _, flag := range []string{"--release-schedulers=another", "--release-priority-cutoff=-4"} {
			s.publish(flag)
			Expect(s.answer(bounded, "plan", "-f", "-")).NotTo(ContainSubstring("2 of 2 machines serve"), flag)
			Expect(s.unpublish()).To(Succeed())
		}
	})
})

var _ = Describe("The flags of status", func() {
	It("show pools by --pool-label, and all namespaces", func() {
		s := newScene(everything)
		s.pool("a")
		s.pool("b")
		for _, name := range []string{"a", "b"} {
			world.Patch(versioned.NewForConfigOrDie(s.ConfigFor("writer")).MachineV1alpha1().MachineDeployments(fixture.Namespace), name, `{"metadata":{"labels":{"team":%q}}}`, name)
		}
		Expect(s.answer("", "status")).To(ContainSubstring(" 1 pool "))
		Expect(s.answer("", "status", "--pool-label=team")).To(ContainSubstring(" 2 pools "))
		s.publish("--pool-label=team")
		Expect(s.answer("", "status")).To(ContainSubstring(" 2 pools "))
		Expect(s.answer("", "status", "--pool-label=other")).To(ContainSubstring(" 1 pool "))
		Expect(s.unpublish()).To(Succeed())
		Expect(s.answer("", "status", "-n", "elsewhere")).NotTo(ContainSubstring(" 1 pool "))
		Expect(s.answer("", "status", "-n", "elsewhere", "--all-namespaces")).To(And(ContainSubstring(" 1 pool "), ContainSubstring(" default/a ")))
	})
})

var _ = It("status reads Nodes from the cluster of --target-kubeconfig", func() {
	s, target := newScene(everything), sim.New(sim.Options{Resources: sim.Core})
	s.pool("pool")
	world.Create(kubernetes.NewForConfigOrDie(target.ConfigFor("writer")).CoreV1().Nodes(), fixture.Node("pool-serves", func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "z9" }))
	Expect(s.answer("", "status", "--target-kubeconfig", running.Kubeconfig(target, "plugin"))).To(ContainSubstring("  pool  z9 "))
})

// fleet is a hub with a federated autoscaler, and with one cluster, of the ClusterProfile munich.
func fleet() scene {
	GinkgoHelper()
	profiles := sim.Resource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Name: "clusterprofiles", Kind: "ClusterProfile", Namespaced: true, Status: true}
	s := newScene(append(slices.Clone(everything), profiles))
	ctx := GinkgoT().Context()
	o := &autoscaling.FederatedHorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	o.Spec.ScaleTargetRef = autoscaling.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"}
	o.Spec.MaxReplicas = 9
	_, err := versioned.NewForConfigOrDie(s.ConfigFor("writer")).AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(fixture.Namespace).Create(ctx, o, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	client := dynamic.NewForConfigOrDie(s.ConfigFor("writer")).Resource(federatedhpa.ProfileResource).Namespace(fixture.Namespace)
	profile := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile", "metadata": map[string]any{"name": "munich"},
	}}
	profile, err = client.Create(ctx, profile, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	profile.Object["status"] = map[string]any{"accessProviders": []any{map[string]any{"name": "login", "cluster": member()}}}
	_, err = client.UpdateStatus(ctx, profile, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return s
}

// inFront is the API server of a cluster.
func inFront() http.Handler {
	GinkgoHelper()
	server := sim.New(sim.Options{Resources: slices.Concat(sim.Core, sim.Workloads)})
	DeferCleanup(server.Close)
	config := server.ConfigFor("member")
	inside, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	at, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	return &httputil.ReverseProxy{Transport: inside, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }}
}

// member is how the API server of a cluster can be reached, by TLS.
func member() map[string]any {
	GinkgoHelper()
	outside := httptest.NewTLSServer(inFront())
	DeferCleanup(outside.Close)
	DeferCleanup(outside.CloseClientConnections)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: outside.Certificate().Raw})
	return map[string]any{"server": outside.URL, "certificate-authority-data": base64.StdEncoding.EncodeToString(authority)}
}

// login is a file of providers whose program leaves a trace when it runs.
func login() (file, trace string) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	file, trace = filepath.Join(dir, "providers.yaml"), filepath.Join(dir, "trace")
	text := fmt.Sprintf(`{providers: [{name: login, execConfig: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: ["-c",
		'touch %s; echo "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"t\"}}"'], provideClusterInfo: false}}]}`, trace)
	Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	return file, trace
}

var _ = Describe("plan with clusters of ClusterProfiles", func() {
	It("predicts their bounds, with credentials from the programs that a flag names", func() {
		s := fleet()
		file, trace := login()
		out, err := s.answer("", "plan", "--federation-registry=clusterprofiles", "--clusterprofile-provider-file", file)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(ContainSubstring("bounds in cluster munich none -> 1-9 (create)"), Not(ContainSubstring("omitted"))))
		Expect(trace).To(BeAnExistingFile())
		Expect(s.written()).To(BeZero())
	})

	It("runs no program without that flag, and reports unreachable clusters", func() {
		_, trace := login()
		out, err := fleet().answer("", "plan", "--federation-registry=clusterprofiles", "--show-all")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("unreachable: munich"))
		Expect(trace).NotTo(BeAnExistingFile())
	})

	It("reports that they are omitted, unless a flag selects another namespace", func() {
		out, err := fleet().answer("", "plan")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("omits the ClusterProfiles munich of namespace default. If the hub runs with --federation-registry=clusterprofiles, use that flag here too"))
		out, err = fleet().answer("", "plan", "--federation-clusters-namespace=elsewhere")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).NotTo(ContainSubstring("ClusterProfiles"))
	})

	It("reads clusters of Secrets as --federation-allow-in-kubeconfigs says", func() {
		s := fleet()
		server := httptest.NewServer(inFront())
		DeferCleanup(server.Close)
		DeferCleanup(server.CloseClientConnections)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "zurich", Labels: map[string]string{federatedhpa.SecretLabel: "true"}}}
		secret.Data = map[string][]byte{"kubeconfig": fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: c}}], users: [{name: c, user: {token: t}}],
			clusters: [{name: c, cluster: {server: %q}}]}`, server.URL)}
		_, err := kubernetes.NewForConfigOrDie(s.ConfigFor("writer")).CoreV1().Secrets(fixture.Namespace).Create(GinkgoT().Context(), secret, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.answer("", "plan", "--show-all")).To(ContainSubstring("unreachable: zurich"))
		Expect(s.answer("", "plan", "--federation-allow-in-kubeconfigs=http")).To(ContainSubstring("bounds in cluster zurich none -> 1-9 (create)"))
	})

	It("reports at once that they cannot be read", func() {
		s := newScene(everything)
		o := `{apiVersion: autoscaling.evenkeel.dev/v1alpha1, kind: FederatedHorizontalPodAutoscaler, metadata: {name: shop}, spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}}}`
		out, err := s.answer(o, "plan", "-f", "-", "--federation-registry=clusterprofiles")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("federated autoscalers are omitted: list the ClusterProfiles in namespace default"))
	})

	DescribeTable("refuses",
		func(says string, args ...string) {
			_, err := newScene(everything).answer("", append([]string{"plan"}, args...)...)
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("a registry that is none", `--federation-registry: "files" is invalid: use secrets or clusterprofiles`, "--federation-registry=files"),
		Entry("programs for a registry that has no use for them", "--clusterprofile-provider-file needs --federation-registry=clusterprofiles", "--clusterprofile-provider-file=a"),
		Entry("a file that is not there", "--clusterprofile-provider-file: open nowhere", "--federation-registry=clusterprofiles", "--clusterprofile-provider-file=nowhere"),
		Entry("a file of something else", "--clusterprofile-provider-file: read providers", "--federation-registry=clusterprofiles", "--clusterprofile-provider-file=plan_test.go"),
	)
})
