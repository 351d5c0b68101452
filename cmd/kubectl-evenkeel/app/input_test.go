// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/app"
)

var _ = DescribeTable("Ctrl-C ends a command that waits for input",
	func(args ...string) {
		s := newScene(everything)
		s.pool("pool")
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(os.WriteFile(path, []byte(`{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "http://sim"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`), 0o600)).To(Succeed())
		silent, typist := io.Pipe()
		DeferCleanup(typist.Close)
		root := app.RootOn(genericiooptions.IOStreams{In: silent, Out: io.Discard, ErrOut: io.Discard}, s.ConfigFor("plugin"))
		root.SetArgs(append([]string{"--kubeconfig", path}, args...))
		ctx, interrupt := context.WithCancel(GinkgoT().Context())
		defer interrupt()
		ended := make(chan error, 1)
		go func() { ended <- root.ExecuteContext(ctx) }()

		Consistently(ended, 200*time.Millisecond).ShouldNot(Receive())
		interrupt()
		Eventually(ended, 10*time.Second).Should(Receive(HaveOccurred()))
		Expect(s.written()).To(BeZero())
	},
	Entry("the answer to a question", "drain-reserve"),
	Entry("a change", "plan", "-f", "-"),
	Entry("a trace", "size", "-f", "-", "--machine", "cpu=4,memory=16Gi", "--boot-time", "2m"),
)
