// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
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
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

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
			By("other labels, also beside a Secret")
			p, err := profiles.Get(context.Background(), "paris", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			p.SetLabels(map[string]string{"in": "france"})
			_, err = profiles.Update(context.Background(), p, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(r.Members()[1].Labels).To(Equal(map[string]string{"in": "france"}))
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

// way is an access provider of a profile, to https://NAME unless a server is set.
func way(name string, change ...func(cluster map[string]any)) any {
	cluster := map[string]any{"server": "https://" + name}
	for _, f := range change {
		f(cluster)
	}
	return map[string]any{"name": name, "cluster": cluster}
}

// extended is for the program of a way.
func extended(name string, value any) func(map[string]any) {
	return func(cluster map[string]any) {
		all, _ := cluster["extensions"].([]any)
		cluster["extensions"] = append(all, map[string]any{"name": name, "extension": value})
	}
}

// profile offers these ways, and those under the former name.
func profile(ways []any, former ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile", "metadata": map[string]any{"name": "munich"},
		"status": map[string]any{"accessProviders": ways, "credentialProviders": former},
	}}
}

func providersOf(text string) Access {
	GinkgoHelper()
	a, err := ReadAccess([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	return a
}

const twoProviders = `{"providers": [
	{"name": "cloud", "execConfig": {"apiVersion": "client.authentication.k8s.io/v1", "command": "cloud-login", "args": ["--quiet"], "env": [{"name": "A", "value": "own"}]}},
	{"name": "fleet", "execConfig": {"apiVersion": "client.authentication.k8s.io/v1", "command": "fleet-login", "args": null, "env": null, "provideClusterInfo": true}}]}`

var _ = Describe("The file of providers", func() {
	DescribeTable("is refused", func(text, says string) {
		_, err := ReadAccess([]byte(text))
		Expect(err).To(MatchError(ContainSubstring(says)))
	},
		Entry("that is garbage", `{{`, "read providers"),
		Entry("with an unknown field", `{"providers":[{"name":"a","exec":{}}]}`, "unknown field"),
		Entry("without a name", `{"providers":[{"execConfig":{"command":"c","apiVersion":"v"}}]}`, "it has no name"),
		Entry("without a program", `{"providers":[{"name":"a","execConfig":{"apiVersion":"v"}}]}`, `provider 0, "a": execConfig needs command`),
		Entry("with another policy of arguments", `{"providers":[{"name":"a","execConfig":{"command":"c","apiVersion":"v"},"profileSourcedCLIArgsPolicy":"Replace"}]}`, `profileSourcedCLIArgsPolicy is "Replace"`),
		Entry("with another policy of variables", `{"providers":[{"name":"a","execConfig":{"command":"c","apiVersion":"v"},"profileSourcedEnvVarsPolicy":"Append"}]}`, `profileSourcedEnvVarsPolicy is "Append"`),
	)
})

// proxied is a way through a proxy.
func proxied(cluster map[string]any) { cluster["proxy-url"] = "http://proxy" }

var _ = Describe("A ClusterProfile", func() {
	DescribeTable("is reached by the first program of the file that it offers a way for",
		func(p *unstructured.Unstructured, program, host string) {
			r := Connected(providersOf(twoProviders), p)
			Expect(r.Fault).To(BeZero())
			Expect(r.Config.ExecProvider.Command).To(Equal(program))
			Expect(r.Config.Host).To(Equal(host))
		},
		Entry("of one", profile([]any{way("fleet")}), "fleet-login", "https://fleet"),
		Entry("of several", profile([]any{way("other"), way("fleet"), way("cloud")}), "cloud-login", "https://cloud"),
		Entry("under the former name", profile(nil, way("fleet")), "fleet-login", "https://fleet"),
		Entry("under both names", profile([]any{way("fleet", func(c map[string]any) { c["server"] = "https://new" })}, way("fleet")), "fleet-login", "https://new"),
	)

	DescribeTable("is not reached",
		func(p *unstructured.Unstructured, reason, says string) {
			r := Connected(providersOf(twoProviders), p)
			Expect(r.Config).To(BeNil())
			Expect(r.Fault.Reason).To(Equal(reason))
			Expect(r.Fault.Message).To(ContainSubstring(says))
		},
		Entry("that offers nothing", profile(nil), "NoAccess", "there are none"),
		Entry("that offers what the file lacks", profile([]any{way("a"), way("b")}), "NoAccess", "status: a, b"),
		Entry("whose server takes credentials in the clear", profile([]any{way("cloud", func(c map[string]any) { c["server"] = "http://a" })}), "AccessInvalid", "use https"),
		Entry("that names a file of this machine", profile([]any{way("cloud", func(c map[string]any) { c["certificate-authority"] = "/etc/ca.crt" })}), "AccessInvalid", "certificate-authority"),
		Entry("that goes through a proxy", profile([]any{way("cloud", proxied)}), "AccessInvalid", "has proxy-url, which --federation-allow-in-kubeconfigs does not allow"),
		Entry("that is of another form", profile([]any{map[string]any{"name": "cloud", "cluster": "a"}}), "AccessInvalid", "read the status"),
	)

	DescribeTable("gives arguments and variables to a program only where the file asks for them",
		func(policies string, args []string, env map[string]string) {
			a := providersOf(fmt.Sprintf(`{"providers":[{"name":"cloud","execConfig":{"apiVersion":"client.authentication.k8s.io/v1","command":"c","args":["own"],"env":[{"name":"A","value":"own"}]}%s}]}`, policies))
			r := Connected(a, profile([]any{way("cloud",
				extended("clusterprofiles.multicluster.x-k8s.io/exec/additional-args", []any{"more"}),
				extended("clusterprofiles.multicluster.x-k8s.io/exec/additional-envs", map[string]any{"A": "theirs", "B": "theirs"}))}))
			Expect(r.Fault).To(BeZero())
			Expect(r.Config.ExecProvider.Args).To(Equal(args))
			is := map[string]string{}
			for _, v := range r.Config.ExecProvider.Env {
				is[v.Name] = v.Value
			}
			Expect(is).To(Equal(env))
		},
		Entry("by default", ``, []string{"own"}, map[string]string{"A": "own"}),
		Entry("said so", `,"profileSourcedCLIArgsPolicy":"Ignore","profileSourcedEnvVarsPolicy":"Ignore"`, []string{"own"}, map[string]string{"A": "own"}),
		Entry("added", `,"profileSourcedCLIArgsPolicy":"Append","profileSourcedEnvVarsPolicy":"AppendIfNotExists"`, []string{"own", "more"}, map[string]string{"A": "own", "B": "theirs"}),
		Entry("replaced", `,"profileSourcedEnvVarsPolicy":"Replace"`, []string{"own"}, map[string]string{"A": "theirs", "B": "theirs"}),
	)

	It("has another print when it is reached in another way, and the same one else", func() {
		a := providersOf(twoProviders)
		env := extended("clusterprofiles.multicluster.x-k8s.io/exec/additional-envs", map[string]any{"A": "1", "B": "2", "C": "3", "D": "4"})
		a.Providers[0].Env = ReplaceEnv
		first := Connected(a, profile([]any{way("cloud", env)})).Print
		for range 20 {
			Expect(Connected(a, profile([]any{way("cloud", env)})).Print).To(Equal(first))
		}
		Expect(Connected(a, profile([]any{way("cloud")})).Print).NotTo(Equal(first))
		Expect(a.Providers[0].ExecConfig.Env).To(Equal([]clientcmdv1.ExecEnvVar{{Name: "A", Value: "own"}}), "what one profile brings is not for the next")
	})
})

// guarded is a server that answers who has the token, over TLS, and a profile of it.
func guarded(token string, change ...func(map[string]any)) *unstructured.Unstructured {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	DeferCleanup(server.Close)
	authority := server.Certificate()
	return profile([]any{way("shell", append(change, func(c map[string]any) {
		c["server"], c["certificate-authority-data"] = server.URL, pemOf(authority)
	})...)})
}

func pemOf(c *x509.Certificate) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

// shell is a provider that runs this script.
func shell(script string) Access {
	GinkgoHelper()
	text, err := json.Marshal(map[string]any{"providers": []any{map[string]any{"name": "shell", "execConfig": map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": []string{"-c", script}, "provideClusterInfo": true,
	}}}})
	Expect(err).NotTo(HaveOccurred())
	return providersOf(string(text))
}

const credential = `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}`

// ask the server of a profile for anything.
func ask(ctx context.Context, r Registration) (int, error) {
	GinkgoHelper()
	Expect(r.Fault).To(BeZero())
	client, err := ClientFor(r)
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Config.Host, nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

var _ = Describe("The program of a provider", func() {
	It("gives the credentials, and is told of the cluster", func(ctx context.Context) {
		p := guarded("paris", extended("client.authentication.k8s.io/exec", map[string]any{"project": "paris"}))
		script := `case "$KUBERNETES_EXEC_INFO" in *'"project":"paris"'*) token=paris;; esac; printf '` + fmt.Sprintf(credential, "%s") + `' "$token"`
		Expect(ask(ctx, Connected(shell(script), p))).To(Equal(http.StatusOK))
	})

	It("delays no other cluster when it hangs", func(ctx context.Context) {
		pipe := filepath.Join(GinkgoT().TempDir(), "pipe")
		Expect(syscall.Mkfifo(pipe, 0o600)).To(Succeed())
		DeferCleanup(func() { // lets the program end
			out, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			Expect(err).NotTo(HaveOccurred())
			Expect(out.Close()).To(Succeed())
		})
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_, err := ask(short, Connected(shell(`cat "`+pipe+`"`), guarded("a")))
		Expect(err).To(MatchError(context.DeadlineExceeded))
	}, NodeTimeout(20*time.Second))
})
