// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// access is a kubeconfig with these lines for its user and its cluster.
func access(user, cluster string) []byte {
	return fmt.Appendf(nil, `
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: "https://192.0.2.1"%s}}]
users: [{name: it, user: {%s}}]
`, cluster, user)
}

var _ = Describe("A kubeconfig", func() {
	It("is taken with a token or a certificate in it", func() {
		config, err := Kubeconfig(access(`token: "secret"`, ""))
		Expect(err).NotTo(HaveOccurred())
		Expect(config.Host).To(Equal("https://192.0.2.1"))
		Expect(config.BearerToken).To(Equal("secret"))
	})

	DescribeTable("is refused",
		func(text []byte, says string) {
			_, err := Kubeconfig(text)
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("that is empty", nil, "no kubeconfig"),
		Entry("that is garbage", []byte("{{"), "read kubeconfig"),
		Entry("that is about nothing", []byte("apiVersion: v1\nkind: Config"), "read kubeconfig"),
		Entry("that runs a program", access(`exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}`, ""), "exec"),
		Entry("that names a plugin", access(`auth-provider: {name: gcp}`, ""), "auth-provider"),
		Entry("that reads a token of this machine", access(`tokenFile: /var/run/secrets/token`, ""), "tokenFile"),
		Entry("that reads a certificate of this machine", access(`client-certificate: /etc/tls.crt, client-key: /etc/tls.key`, ""), "client-certificate, client-key"),
		Entry("that reads an authority of this machine", access(`token: a`, ", certificate-authority: /etc/ca.crt"), "certificate-authority"),
		Entry("that speaks in the clear", []byte(strings.Replace(string(access("token: a", "")), "https:", "http:", 1)), "has http,"),
		Entry("that trusts any server", access("token: a", ", insecure-skip-tls-verify: true"), "has insecure-skip-tls-verify,"),
		Entry("that goes through a proxy", access("token: a", `, proxy-url: "http://proxy"`), "has proxy-url,"),
		Entry("that is huge", access(`token: "`+strings.Repeat("a", 300<<10)+`"`, ""), "longer than 256 KiB"),
	)

	It("is taken with what the operator allows", func() {
		for allow, text := range map[string][]byte{
			AllowHTTP:     []byte(strings.Replace(string(access("token: a", "")), "https:", "http:", 1)),
			AllowInsecure: access("token: a", ", insecure-skip-tls-verify: true"),
			AllowProxy:    access("token: a", `, proxy-url: "http://proxy"`),
		} {
			Expect(Allowed{allow}.Validate()).To(Succeed())
			_, err := Kubeconfig(text, allow)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(Allowed{"all"}.Validate()).To(MatchError(ContainSubstring("http, insecure-skip-tls-verify, proxy-url")))
	})

	It("is not repeated in what is said of it", func() {
		for _, text := range [][]byte{access(`token: [s3cr3t]`, ""), access(`client-key-data: s3cr3t`, ""), []byte("s3cr3t"), []byte("users: s3cr3t")} {
			_, err := Kubeconfig(text)
			Expect(err).To(MatchError(Not(ContainSubstring("s3cr3t"))))
		}
	})
})

// registered runs a registry over a hub in virtual time.
func registered(registry func(s *sim.Server) Registry, body func(s *sim.Server, r Registry, changes *atomic.Int32)) {
	storm.Bubble(suite, func() {
		s := sim.New(sim.Options{Seed: 1, Resources: hubServes})
		defer s.Close()
		r := registry(s)
		var changes atomic.Int32
		r.Notify(func() { changes.Add(1) })
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.Run(ctx)
		}()
		time.Sleep(time.Second)
		body(s, r, &changes)
		cancel()
		<-ended
		synctest.Wait()
	})
}

// listedBy returns the names of members, with the reasons of their faults.
func listedBy(r Registry) string {
	var words []string
	for _, m := range r.Members() {
		words = append(words, strings.TrimSpace(m.Name+" "+m.Fault.Reason))
	}
	return strings.Join(words, ", ")
}

func secret(name string, labels map[string]string, key string, text []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, Labels: labels}, Data: map[string][]byte{key: text}}
}

var _ = Describe("The registry of Secrets", func() {
	It("has one cluster for each with the label, and tells of changes", func() {
		registered(func(s *sim.Server) Registry {
			return NewSecrets(kubernetes.NewForConfigOrDie(s.ConfigFor("hub")), ns, nil)
		},
			func(s *sim.Server, r Registry, changes *atomic.Int32) {
				secrets := kubernetes.NewForConfigOrDie(s.ConfigFor("user")).CoreV1().Secrets(ns)
				labels := map[string]string{SecretLabel: "true", "tier": "web"}
				for _, one := range []*corev1.Secret{secret("b", labels, "kubeconfig", access("token: a", "")), secret("a", labels, "kubeconfig", []byte("{{")), secret("c", labels, "other", nil), secret("x", nil, "kubeconfig", access("token: a", ""))} {
					_, err := secrets.Create(context.Background(), one, metav1.CreateOptions{})
					Expect(err).NotTo(HaveOccurred())
				}
				time.Sleep(time.Second)
				Expect(listedBy(r)).To(Equal("a KubeconfigInvalid, b, c KubeconfigInvalid"))
				Expect(r.Members()[1].Labels).To(HaveKeyWithValue("tier", "web"))
				Expect(changes.Load()).To(BeEquivalentTo(3))
				print := r.Members()[1].Print
				_, err := secrets.Update(context.Background(), secret("b", labels, "kubeconfig", access("token: b", "")), metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				time.Sleep(time.Second)
				Expect(r.Members()[1].Print).NotTo(Equal(print), "another access is to be told apart")
				Expect(secrets.Delete(context.Background(), "b", metav1.DeleteOptions{})).To(Succeed())
				time.Sleep(time.Second)
				Expect(listedBy(r)).To(Equal("a KubeconfigInvalid, c KubeconfigInvalid"))
			})
	})
})

var _ = Describe("The registry of ClusterProfiles", func() {
	It("has one cluster for each, with the access that a Secret gives", func() {
		registered(func(s *sim.Server) Registry {
			config := s.ConfigFor("hub")
			return NewProfiles(dynamic.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config), ns, providersOf(twoProviders), nil)
		}, func(s *sim.Server, r Registry, changes *atomic.Int32) {
			config := s.ConfigFor("user")
			profiles := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}).Namespace(ns)
			for _, name := range []string{"munich", "paris"} {
				_, err := profiles.Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile", "metadata": map[string]any{"name": name, "labels": map[string]any{"in": name}},
				}}, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			time.Sleep(time.Second)
			Expect(listedBy(r)).To(Equal("munich NoAccess, paris NoAccess"))
			both := secret("any", map[string]string{ProfileLabel: "paris"}, "Config", access("token: a", ""))
			both.Data["kubeconfig"] = []byte("{{") // of another consumer
			_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets(ns).Create(context.Background(), both, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(listedBy(r)).To(Equal("munich NoAccess, paris"))
			Expect(r.Members()[1].Labels).To(HaveKeyWithValue("in", "paris"))
			Expect(changes.Load()).To(BeEquivalentTo(3))
			By("a program that its status offers, and by a Secret rather than by that")
			for _, name := range []string{"munich", "paris"} {
				p, err := profiles.Get(context.Background(), name, metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				p.Object["status"] = profile([]any{way("fleet")}).Object["status"]
				_, err = profiles.UpdateStatus(context.Background(), p, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			time.Sleep(time.Second)
			Expect(listedBy(r)).To(Equal("munich, paris"))
			Expect(r.Members()[0].Config.Host).To(Equal("https://fleet"))
			Expect(r.Members()[1].Config.ExecProvider).To(BeNil())
		})
	})

	It("goes through the proxy of a profile where that is allowed", func() {
		registered(func(s *sim.Server) Registry {
			config := s.ConfigFor("hub")
			return NewProfiles(dynamic.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config), ns, providersOf(twoProviders), Allowed{AllowProxy})
		}, func(s *sim.Server, r Registry, _ *atomic.Int32) {
			profiles := dynamic.NewForConfigOrDie(s.ConfigFor("user")).Resource(schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}).Namespace(ns)
			p := profile([]any{way("fleet", proxied)})
			made, err := profiles.Create(context.Background(), p, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			made.Object["status"] = p.Object["status"]
			_, err = profiles.UpdateStatus(context.Background(), made, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(listedBy(r)).To(Equal("munich"))
			proxy, err := r.Members()[0].Config.Proxy(&http.Request{})
			Expect(err).NotTo(HaveOccurred())
			Expect(proxy.Host).To(Equal("proxy"))
		})
	})
})
