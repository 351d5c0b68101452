// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

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
		Expect(out).To(ContainSubstring("out of reach: munich"))
		Expect(trace).NotTo(BeAnExistingFile())
	})

	It("reports that they are omitted, unless a flag selects another namespace", func() {
		out, err := fleet().answer("", "plan")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("the ClusterProfiles munich of namespace default are omitted. If the hub runs with --federation-registry=clusterprofiles, use that flag here too"))
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
		Expect(s.answer("", "plan", "--show-all")).To(ContainSubstring("out of reach: zurich"))
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
		Entry("a registry that is none", `--federation-registry: "files" is neither secrets nor clusterprofiles`, "--federation-registry=files"),
		Entry("programs for a registry that has no use for them", "--clusterprofile-provider-file needs --federation-registry=clusterprofiles", "--clusterprofile-provider-file=a"),
		Entry("a file that is not there", "--clusterprofile-provider-file: open nowhere", "--federation-registry=clusterprofiles", "--clusterprofile-provider-file=nowhere"),
		Entry("a file of something else", "--clusterprofile-provider-file: read providers", "--federation-registry=clusterprofiles", "--clusterprofile-provider-file=fleet_test.go"),
	)
})
