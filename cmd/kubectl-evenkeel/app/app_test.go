// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/app"
	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("The command line", func() {
	It("prints help where nothing is asked", func() {
		out, err := newScene(everything).run()
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(ContainSubstring("kubectl evenkeel [command]"), ContainSubstring("status "), ContainSubstring("explain ")))
	})

	DescribeTable("reports what is wrong with the command line",
		func(want string, args ...string) {
			s := newScene(everything)
			s.pool("pool")
			_, err := s.run(args...)
			Expect(err).To(MatchError(ContainSubstring(want)))
		},
		Entry(nil, `unknown command "staus": did you mean status?`, "staus"),
		Entry(nil, `unknown command "xyzzy": see kubectl evenkeel --help`, "xyzzy"),
		Entry(nil, `--output "xml" is invalid: use json, yaml, wide`, "status", "-o", "xml"),
		Entry(nil, `unknown command "more" for "kubectl evenkeel status"`, "status", "more"),
		Entry(nil, `unknown kind "node": use machine, machinedeployment, balancer, fhpa, reserve, capacitybuffer or provisioningrequest`, "explain", "node", "n"),
		Entry(nil, `the name of the machine is missing`, "explain", "machine"),
		Entry(nil, `the name of the balancer is missing`, "explain", "balancers/"),
		Entry(nil, `machine "x": not found; this is the namespace of the kubeconfig; use -n for another one, or -A for all`, "explain", "machine", "x"),
		Entry(nil, `fhpa "x": not found`, "explain", "fhpa.autoscaling.evenkeel.dev/x", "-A"),
		Entry(nil, `top needs a terminal`, "top"),
	)

	It("does not suggest another namespace for a CapacityBuffer, which is looked for in all", func() {
		_, err := newScene(everything).run("explain", "cb", "x")
		Expect(err).To(MatchError(And(ContainSubstring(`capacitybuffer "x": not found`), Not(ContainSubstring("use -n")))))
	})

	It("has two examples with each command, and a sentence on what it is for", func() {
		root := app.NewRoot(genericiooptions.IOStreams{})
		var names []string
		for _, c := range root.Commands() {
			if names = append(names, c.Name()); c.Name() == "completion" {
				continue
			}
			Expect(strings.Count(c.Example, "kubectl evenkeel "+c.Name())).To(BeNumerically(">=", 2), c.Name())
			Expect(c.Short).NotTo(BeEmpty())
			Expect(c.Long).NotTo(BeEmpty())
		}
		Expect(names).To(ContainElements("status", "explain", "top"))
	})

	It("reports a missing kubeconfig", func() {
		var out bytes.Buffer
		root := app.NewRoot(genericiooptions.IOStreams{In: &out, Out: &out, ErrOut: &out})
		root.SetArgs([]string{"status", "--kubeconfig", filepath.Join(GinkgoT().TempDir(), "none")})
		Expect(root.Execute()).To(MatchError(ContainSubstring("read the kubeconfig: ")))
	})

	It("reports a missing target kubeconfig", func() {
		folder := GinkgoT().TempDir()
		path := filepath.Join(folder, "control")
		Expect(os.WriteFile(path, []byte(`{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`), 0o600)).To(Succeed())
		var out bytes.Buffer
		root := app.NewRoot(genericiooptions.IOStreams{In: &out, Out: &out, ErrOut: &out})
		root.SetArgs([]string{"status", "--kubeconfig", path, "--target-kubeconfig", filepath.Join(folder, "none")})
		Expect(root.Execute()).To(MatchError(ContainSubstring("read the target kubeconfig: ")))
	})
})

var _ = Describe("Status", func() {
	It("shows a pool", func() {
		s := newScene(everything)
		s.pool("pool")
		out, err := s.run("status")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("POOL pool   1/1 serve, 1/1 reserve ready\n"))
		Expect(out).To(ContainSubstring("  pool  z1     1   1   1  -       ■ □\n"))
		Expect(out).NotTo(ContainSubstring("\x1b"), "this is no terminal")
	})

	It("lists machines where that was asked for", func() {
		s := newScene(everything)
		s.pool("pool")
		out, err := s.run("status", "-o", "wide")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(MatchRegexp(`(?m)^  pool-waits +reserve ready +\d+s +0  pool-waits$`))
	})

	It("prints the same for programs, as JSON and as YAML", func() {
		s := newScene(everything)
		s.pool("pool")
		text, err := s.run("status", "-o", "json")
		Expect(err).NotTo(HaveOccurred())
		var first, second overview.Overview
		Expect(json.Unmarshal([]byte(text), &first)).To(Succeed())
		Expect(first.Pools).To(HaveLen(1))
		Expect(first.Pools[0].Zones[0].Count).To(Equal(map[overview.State]int{overview.Working: 1, overview.ReserveReady: 1}))
		text, err = s.run("status", "-o", "yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.Unmarshal([]byte(text), &second)).To(Succeed())
		second.At = first.At
		Expect(second).To(Equal(first))
	})

	It("reports an empty namespace", func() {
		out, err := newScene(everything).run("status")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("No objects found in this namespace; use -A for all namespaces."))
	})

	It("reports kinds that are not installed", func() {
		out, err := newScene(sim.Core).run("status")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("machinesets, reserves: not installed in this"))
	})
})

var _ = Describe("Explain", func() {
	for _, args := range [][]string{{"machine", "pool-waits"}, {"mc/pool-waits"}, {"Machines", "pool-waits"}, {"machine.machine.sapcloud.io/pool-waits"}} {
		It("explains "+strings.Join(args, " "), func() {
			s := newScene(everything)
			s.pool("pool")
			out, err := s.run(append([]string{"explain"}, args...)...)
			Expect(err).NotTo(HaveOccurred())
			Expect(out).To(HavePrefix("Machine pool-waits: reserve ready\n"))
			Expect(out).To(ContainSubstring("When replicas are raised, it is the 1st to serve"))
		})
	}
})

var _ = Describe("Completion", func() {
	complete := func(args ...string) []string {
		GinkgoHelper()
		s := newScene(everything)
		s.pool("pool-a")
		s.pool("pool-b")
		out, err := s.run(append([]string{"__complete"}, args...)...)
		Expect(err).NotTo(HaveOccurred())
		lines := strings.Split(strings.TrimSpace(out), "\n")
		return lines[:len(lines)-1]
	}

	It("offers kinds, then the names that are there now, then nothing", func() {
		Expect(complete("explain", "")).To(Equal([]string{"machine", "machinedeployment", "balancer", "fhpa", "reserve", "capacitybuffer", "provisioningrequest"}))
		Expect(complete("explain", "mcd", "")).To(Equal([]string{"pool-a", "pool-b"}))
		Expect(complete("explain", "machine", "pool-a")).To(ContainElements("pool-a-serves", "pool-a-waits"))
		Expect(complete("explain", "machine", "pool-a-waits", "")).To(BeEmpty())
		Expect(complete("explain", "node", "")).To(BeEmpty())
		Expect(complete("size", "")).To(Equal([]string{"pool-a", "pool-b"}))
		Expect(complete("size", "pool-a", "")).To(BeEmpty())
	})

	It("offers commands and forms of output", func() {
		Expect(complete("st")).To(ContainElement(HavePrefix("status\t")))
		Expect(complete("status", "-o", "")).To(Equal([]string{"json", "yaml", "wide"}))
		Expect(complete("size", "-o", "")).To(Equal([]string{"json", "yaml", "reserve"}))
		Expect(complete("plan", "-o", "")).To(Equal([]string{"json", "yaml"}))
	})

	It("prints the program that kubectl looks for", func() {
		out, err := newScene(everything).run("completion", "kubectl")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(Equal("#!/bin/sh\nexec kubectl evenkeel __complete \"$@\"\n"))
	})
})

var _ = It("What looks writes nothing", func() {
	s := newScene(everything)
	s.pool("pool")
	for _, args := range [][]string{{"status"}, {"status", "-o", "json"}, {"explain", "mcd", "pool"}, {"explain", "machine", "pool-waits"}, {"__complete", "explain", "mc", ""}} {
		_, err := s.run(args...)
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(slices.ContainsFunc(s.Writes(), func(w sim.Write) bool { return w.User == "plugin" })).To(BeFalse())
	Expect(slices.ContainsFunc(s.Writes(), func(w sim.Write) bool { return w.User == "writer" })).To(BeTrue())
})

var _ = DescribeTable("The locale decides about characters",
	func(want bool, environment ...string) {
		Expect(app.Unicode(variables(environment))).To(Equal(want))
	},
	Entry("no variable is set", true),
	Entry("UTF-8", true, "LANG=de_DE.UTF-8"),
	Entry("utf8", true, "LANG=C.utf8"),
	Entry("C", false, "LANG=C"),
	Entry("the first variable that is set counts", false, "LC_ALL=POSIX", "LANG=de_DE.UTF-8"),
	Entry("the second", true, "LC_CTYPE=en_US.UTF-8", "LANG=C"),
)

var _ = DescribeTable("A terminal has colours",
	func(want bool, environment ...string) {
		Expect(app.Colors(variables(environment))).To(Equal(want))
	},
	Entry("mostly", true, "TERM=xterm"),
	Entry("not if the environment forbids them", false, "TERM=xterm", "NO_COLOR=1"),
	Entry("not if it cannot show them", false, "TERM=dumb"),
)

// variables are those of an environment.
func variables(pairs []string) func(string) string {
	return func(name string) string {
		for _, pair := range pairs {
			if key, value, _ := strings.Cut(pair, "="); key == name {
				return value
			}
		}
		return ""
	}
}

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
