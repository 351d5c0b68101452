// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// served runs ui until the spec has ended or calls stop, and returns the address that it prints and how it ends.
func (s scene) served(ctx context.Context, flags ...string) (address string, stop func(), ended <-chan error) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	DeferCleanup(cancel)
	printed, out := io.Pipe()
	root := s.root(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: io.Discard}, append([]string{"ui"}, flags...)...)
	result := make(chan error, 1)
	go func() { result <- root.ExecuteContext(ctx); _ = out.Close() }()
	line, err := bufio.NewReader(printed).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(line), cancel, result
}

// browser keeps cookies, as a person's does.
var browser = &http.Client{Jar: jar()}

func jar() http.CookieJar {
	jar, _ := cookiejar.New(nil) // never returns an error
	return jar
}

func load(ctx context.Context, address string) *bufio.Reader {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	Expect(err).NotTo(HaveOccurred())
	answer, err := browser.Do(request)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(answer.Body.Close)
	Expect(answer.StatusCode).To(Equal(http.StatusOK))
	return bufio.NewReader(answer.Body)
}

var _ = Describe("ui", func() {
	It("serves what is in the cluster, tells what changes, and ends when it is told to", func(ctx context.Context) {
		s := newScene(everything)
		s.pool("pool")
		address, stop, ended := s.served(ctx)
		Expect(address).To(MatchRegexp(`^http://127\.0\.0\.1:\d+/\?key=[\w-]{43}$`))
		page, err := io.ReadAll(load(ctx, address))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(page)).To(And(ContainSubstring("namespace "+fixture.Namespace), ContainSubstring(`href="/zone/default/pool"`)))

		root, _, _ := strings.Cut(address, "?")
		stream := load(ctx, root+"events")
		Expect(stream.ReadString('\n')).To(ContainSubstring("pool/default/"))
		err = s.clusters.Control.MachineV1alpha1().MachineDeployments(fixture.Namespace).Delete(ctx, "pool", metav1.DeleteOptions{})
		Expect(err).NotTo(HaveOccurred())
		for line := ""; !strings.Contains(line, "There are no MachineDeployments"); {
			line, err = stream.ReadString('\n')
			Expect(err).NotTo(HaveOccurred())
		}
		stop()
		Expect(<-ended).To(Succeed())
	}, NodeTimeout(20*time.Second))

	It("sizes the reserve of a MachineDeployment from the objects in the cluster, and reports what is missing", func(ctx context.Context) {
		s := newScene(everything)
		s.pool("pool")
		address, _, _ := s.served(ctx)
		root, _, _ := strings.Cut(address, "?")
		read := func(path string) string {
			GinkgoHelper()
			text, err := io.ReadAll(load(ctx, path))
			Expect(err).NotTo(HaveOccurred())
			return string(text)
		}
		read(address)
		Expect(read(root + "zone/default/pool")).To(ContainSubstring(`href="/size/default/pool"`))
		Expect(read(root + "size/default/pool")).To(ContainSubstring("the boot time is unknown"))

		core := kubernetes.NewForConfigOrDie(s.ConfigFor("writer")).CoreV1()
		_, err := core.Pods(fixture.Namespace).Create(ctx, fixture.Pod("waits"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		node, err := core.Nodes().Get(ctx, "pool-serves", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(90 * time.Second))
		_, err = core.Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() string { return read(root + "size/default/pool") }).WithContext(ctx).Should(And(
			ContainSubstring("Machines of 4 CPU, 16Gi and 110 pods boot in "), ContainSubstring(`src="/size/default/pool/frontier.svg"`)))
		Expect(read(root + "size/default/pool/frontier.svg")).To(ContainSubstring("What a reserve costs: MachineDeployment pool"))
	}, NodeTimeout(20*time.Second))

	It("sizes the reserve of the MachineDeployment in the namespace of its page, beside one of the same name in another", func(ctx context.Context) {
		s := newScene(everything)
		s.pool("pool")
		twin := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
		_, err := versioned.NewForConfigOrDie(s.ConfigFor("writer")).MachineV1alpha1().MachineDeployments("other").Create(ctx, twin, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		address, _, _ := s.served(ctx, "-A")
		load(ctx, address)
		root, _, _ := strings.Cut(address, "?")
		Expect(io.ReadAll(load(ctx, root+"size/default/pool"))).To(ContainSubstring("the boot time is unknown"))
	}, NodeTimeout(20*time.Second))

	It("shows and sizes reserves by the flags of the manager", func(ctx context.Context) {
		s := newScene(everything)
		s.pool("pool")
		s.publish("--drain-reserve", "--reserve-boot-patience=-1m")
		address, _, _ := s.served(ctx)
		Expect(io.ReadAll(load(ctx, address))).To(ContainSubstring("1 <small>of 0</small>"), "no reserve is desired")
		root, _, _ := strings.Cut(address, "?")
		Expect(io.ReadAll(load(ctx, root+"size/default/pool"))).To(ContainSubstring("--reserve-boot-patience: use a duration"))
	}, NodeTimeout(20*time.Second))

	It("names the context that it shows", func(ctx context.Context) {
		s := newScene(everything)
		address, _, _ := s.served(ctx)
		Expect(io.ReadAll(load(ctx, address))).To(ContainSubstring("c, namespace default"))
		address, _, _ = s.served(ctx, "--context=d", "-A")
		Expect(io.ReadAll(load(ctx, address))).To(ContainSubstring("d, all namespaces"))
	}, NodeTimeout(20*time.Second))

	It("needs a port that is free", func(ctx context.Context) {
		s := newScene(everything)
		address, _, _ := s.served(ctx)
		place, err := url.Parse(address)
		Expect(err).NotTo(HaveOccurred())
		_, err = s.run("ui", "--port", place.Port())
		Expect(err).To(MatchError(ContainSubstring("listen for browsers")))
	}, NodeTimeout(20*time.Second))
})
