// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/app"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// pods is a trace of three pods at once and one at night. Each of them needs a machine.
const pods = `time,cpu,memory,duration,count
2026-03-02T08:00:00Z,3,1Gi,10m,3
2026-03-02T22:59:00Z,3,1Gi,10m,1
`

// machine describes machines by flags alone.
var machine = []string{"--machine", "cpu=4,memory=16Gi", "--boot-time", "2m,3m"}

// sized is the command with a trace typed into it, and what it prints as errors.
func sized(in string, args ...string) (out, notes string, err error) {
	GinkgoHelper()
	var stdout, stderr bytes.Buffer
	root := app.NewRoot(genericiooptions.IOStreams{In: strings.NewReader(in), Out: &stdout, ErrOut: &stderr})
	root.SetArgs(append([]string{"size", "--kubeconfig", filepath.Join(GinkgoT().TempDir(), "none")}, args...))
	err = root.ExecuteContext(GinkgoT().Context())
	return stdout.String(), stderr.String(), err
}

var _ = Describe("Size", func() {
	It("needs no cluster", func() {
		out, notes, err := sized(pods, append(machine, "-f", "-", "--current", "5", "--price", "0.5")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(notes).To(BeEmpty())
		Expect(out).To(And(
			HavePrefix("4 pods from 2026-03-02 08:00 to 2026-03-02 23:00 UTC, 15h\nMachines of 4 CPU, 16Gi and 110 pods boot in 2m to 3m."),
			ContainSubstring("RESERVE  HOURS"), ContainSubstring("COST"),
			MatchRegexp(`(?m)^3 .* enough$`), MatchRegexp(`(?m)^5 .* now$`),
			ContainSubstring("Keep 3 machines at any time"),
			ContainSubstring("---\napiVersion: autoscaling.evenkeel.dev/v1alpha1\nkind: Reserve\nmetadata:\n  name: sized\n"),
			HaveSuffix("    - your-machinedeployment\n  replicas: 3\n"),
		))
	})

	It("reads a file", func() {
		file := filepath.Join(GinkgoT().TempDir(), "pods.csv")
		Expect(os.WriteFile(file, []byte(pods), 0o600)).To(Succeed())
		out, _, err := sized("", append(machine, "-f", file)...)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(HavePrefix("4 pods"))
	})

	It("prints the same for programs, as JSON and as YAML", func() {
		var first, second size.Answer
		out, _, err := sized(pods, append(machine, "-f", "-", "-o", "json", "--percentile", "50")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal([]byte(out), &first)).To(Succeed())
		Expect(first.Pods).To(Equal(4))
		Expect(first.Amount.Machines).To(Equal(1), "of four pods, two may wait")
		Expect(first.Reserve.Spec.Replicas).To(BeEquivalentTo(1))
		out, _, err = sized(pods, append(machine, "-f", "-", "-o", "yaml", "--percentile", "50")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.Unmarshal([]byte(out), &second)).To(Succeed())
		a, err := json.Marshal(first)
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Marshal(second)).To(MatchJSON(a))
	})

	It("prints the Reserve alone", func() {
		out, _, err := sized(pods, append(machine, "-f", "-", "-o", "reserve", "--worker-pool", "shop", "--name", "day")...)
		Expect(err).NotTo(HaveOccurred())
		var m size.Manifest
		Expect(yaml.UnmarshalStrict([]byte(out), &m)).To(Succeed())
		Expect(m.Metadata.Name).To(Equal("day"))
		Expect(m.Spec.Pools.WorkerPools).To(Equal([]string{"shop"}))
	})

	It("takes the trace from Prometheus", func() {
		token := filepath.Join(GinkgoT().TempDir(), "token")
		Expect(os.WriteFile(token, []byte("secret\n"), 0o600)).To(Succeed())
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer GinkgoRecover()
			Expect(r.Header.Get("Authorization")).To(Equal("Bearer secret"))
			query, result := r.PostFormValue("query"), ""
			value := map[bool]string{true: "1772442000", false: "1"}[strings.Contains(query, "kube_pod_created")] // nine on the second of March
			if !strings.Contains(query, "kube_pod_owner") && !strings.Contains(query, "completion") {
				result = `{"metric":{"namespace":"shop","pod":"web-1","uid":"u"},"values":[[1772445600,"` + value + `"]]}`
			}
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, result)
		}))
		DeferCleanup(s.Close)
		out, _, err := sized("", append(machine, "pool", "--prometheus", s.URL, "--prometheus-token-file", token, "--start", "2026-03-02 06:00", "--end", "2026-03-02 10:00")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(
			HavePrefix("MachineDeployment pool: 1 pod from 2026-03-02 06:00 to 2026-03-02 10:00 UTC, 4h\n"),
			ContainSubstring("--prometheus-nodes"),
		))
		out, _, err = sized("", append(machine, "--prometheus", s.URL, "--prometheus-token-file", token, "--end", "2026-03-02 10:00")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(HavePrefix("1 pod from 2026-02-16 10:00 to 2026-03-02 10:00 UTC, 14d\n"), "two weeks")
	})

	It("asks Prometheus for the pods and as precisely as flags say", func() {
		var mu sync.Mutex
		asked := map[string]bool{}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked["step "+r.PostFormValue("step")] = true
			for _, word := range []string{`namespace="shop"`, "pool-z1-.*"} {
				asked[word] = asked[word] || strings.Contains(r.PostFormValue("query"), word)
			}
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
		}))
		DeferCleanup(s.Close)
		_, _, err := sized("", append(machine, "--prometheus", s.URL, "--prometheus-matchers", `namespace="shop"`, "--prometheus-nodes", "pool-z1-.*", "--prometheus-step", "5m", "--end", "2026-03-02 10:00")...)
		Expect(err).To(MatchError(ContainSubstring("that --prometheus-matchers match")))
		Expect(asked).To(And(HaveKeyWithValue(`namespace="shop"`, true), HaveKeyWithValue("pool-z1-.*", true), HaveKey("step 300")))
	})

	DescribeTable("plays what differs", func(args ...string) {
		before, _, err := sized(pods, append(machine, "-f", "-")...)
		Expect(err).NotTo(HaveOccurred())
		after, _, err := sized(pods, append(append(machine, "-f", "-"), args...)...)
		Expect(err).NotTo(HaveOccurred())
		Expect(after).NotTo(Equal(before))
	},
		Entry("with --release-time", "--release-time", "2s"),
		Entry("with --scan-interval", "--scan-interval", "5m"),
		Entry("with --scale-down-unneeded-time", "--scale-down-unneeded-time", "1h"),
		Entry("with --percentile", "--percentile", "50"),
		Entry("with --wait", "--wait", "20m"),
	)

	It("suggests schedules in a time zone", func() {
		out, _, err := sized("", append(machine, "-f", "../../../examples/pods.csv", "--time-zone", "Europe/Berlin", "--worker-pool", "shop", "-o", "reserve")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("timeZone: Europe/Berlin"))
	})

	It("draws the week", func() {
		file := filepath.Join(GinkgoT().TempDir(), "week.svg")
		_, _, err := sized(pods, append(machine, "-f", "-", "--svg", file)...)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.ReadFile(file)).To(HavePrefix("<svg "))
		_, _, err = sized(pods, append(machine, "-f", "-", "--svg", filepath.Join(file, "below"))...)
		Expect(err).To(MatchError(ContainSubstring("write the picture: ")))
	})

	It("counts what lies between start and end alone", func() {
		out, _, err := sized(pods, append(machine, "-f", "-", "--start", "2026-03-02 20:00", "--end", "2026-03-03 00:00")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(HavePrefix("1 pod from 2026-03-02 20:00 to 2026-03-03 00:00 UTC, 4h\n"))
	})

	It("replays without an autoscaler, and within bounds", func() {
		out, _, err := sized(pods, append(machine, "-f", "-", "--autoscaler=false", "--bounds", "0:2")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("No reserve reaches p99 within 5s: with 2 machines, it is 10m."))
	})

	It("reports that the cluster does not answer, and continues with flags", func() {
		out, notes, err := sized(pods, append(machine, "pool", "-f", "-")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(notes).To(HavePrefix("Note: cannot read MachineDeployment pool, so flags and defaults apply: read the kubeconfig: "))
		Expect(out).To(ContainSubstring("    - pool\n"))
	})

	DescribeTable("reports what is wrong with the command line",
		func(want, in string, args ...string) {
			_, _, err := sized(in, args...)
			Expect(err).To(MatchError(ContainSubstring(want)))
		},
		Entry(nil, "the trace is missing: set one of --file, --from-cluster and --prometheus", ""),
		Entry(nil, "the trace is missing: set one of --file, --from-cluster and --prometheus", "", "-f", "-", "--from-cluster"),
		Entry(nil, "read the token of Prometheus: ", "", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m", "--prometheus", "http://127.0.0.1:1", "--prometheus-token-file", "none"),
		Entry(nil, "query Prometheus: ", "", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m", "--prometheus", "http://127.0.0.1:1"),
		Entry(nil, "read the kubeconfig: ", "", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m", "--from-cluster"),
		Entry(nil, `--output "xml" is invalid: use json, yaml, reserve`, "", "-f", "-", "-o", "xml"),
		Entry(nil, "read no.csv: no such file or directory", "", "-f", "no.csv", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m"),
		Entry(nil, `read -: line 2: cpu "much"`, "time,cpu,memory\n0,much,1\n", "-f", "-", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m"),
		Entry(nil, "the trace contains no pods", "time,cpu,memory\n", "-f", "-", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m"),
		Entry(nil, "the size of a machine is unknown: set --machine", pods, "-f", "-"),
		Entry(nil, "shows it: set --boot-time", pods, "-f", "-", "--machine", "cpu=4,memory=1Gi"),
		Entry(nil, `--machine "cpu=4": cpu and memory are required`, pods, "-f", "-", "--machine", "cpu=4"),
		Entry(nil, `--machine "cpu=4,disk=1" is invalid: use for example`, pods, "-f", "-", "--machine", "cpu=4,disk=1"),
		Entry(nil, `--bounds "1:2:3" is invalid: use min:max`, pods, "-f", "-", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m", "--bounds", "1:2:3"),
		Entry(nil, "the bounds allow no machine", pods, "-f", "-", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m", "--bounds", "0:0"),
		Entry(nil, `--time-zone "Berlin" is unknown`, pods, "-f", "-", "--time-zone", "Berlin"),
		Entry(nil, `--time-zone "Local" is unknown`, pods, "-f", "-", "--time-zone", "Local"),
		Entry(nil, `--start "soon"`, pods, "-f", "-", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m", "--start", "soon"),
		Entry(nil, "the time from 2026-03-02T08:00:00Z to 2026-03-02T07:00:00Z is empty", pods, "-f", "-", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m", "--end", "2026-03-02 07:00"),
		Entry(nil, "percentile 100: write a number above 0 and below 100", pods, "-f", "-", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m", "--percentile", "100"),
		Entry(nil, "--reserve-boot-patience: use a duration, or 0 for no limit", pods, "-f", "-", "--reserve-boot-patience", "-1m"),
		Entry(nil, "--price must not be negative", pods, "-f", "-", "--price", "-1"),
		Entry(nil, "--current -1 is invalid", pods, "-f", "-", "--current", "-1"),
		Entry(nil, "the MachineDeployment is missing: name it, or set --worker-pool", pods, "-f", "-", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m", "-o", "reserve"),
		Entry(nil, "no reserve is necessary", pods, "-f", "-", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m", "-o", "reserve", "--wait", "1h"),
		Entry(nil, "no reserve keeps waits within --wait", pods, "-f", "-", "--machine", "cpu=4,memory=1Gi", "--boot-time", "2m", "-o", "reserve", "--wait", "1ms"),
	)

	Describe("of a MachineDeployment", func() {
		It("takes from it what flags leave open, and writes nothing", func() {
			s := newScene(everything)
			s.pool("pool")
			out, err := s.answer(pods, "size", "pool", "-f", "-", "--boot-time", "2m")
			Expect(err).NotTo(HaveOccurred())
			Expect(out).To(And(
				HavePrefix("MachineDeployment pool: 4 pods from "),
				ContainSubstring("Machines of 4 CPU, 16Gi and 110 pods boot in 2m."),
				MatchRegexp(`(?m)^1 .* now$`),
				ContainSubstring("  name: pool\n  namespace: default\n"),
			))
			Expect(s.written()).To(BeZero())
		})

		It("takes the trace from the cluster: pods that wait, and those on its Nodes", func() {
			s := newScene(everything)
			s.pool("pool")
			core := kubernetes.NewForConfigOrDie(s.ConfigFor("writer")).CoreV1()
			for name, node := range map[string]string{"here": "pool-serves", "elsewhere": "other", "waits": ""} {
				_, err := core.Pods(fixture.Namespace).Create(GinkgoT().Context(), fixture.Pod(name, func(p *corev1.Pod) { p.Spec.NodeName = node }), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			end := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
			out, err := s.answer("", "size", "pool", "--from-cluster", "--boot-time", "2m", "--end", end)
			Expect(err).NotTo(HaveOccurred())
			Expect(out).To(And(HavePrefix("MachineDeployment pool: 2 pods from "), ContainSubstring("note: pods that no longer exist are known only")))
			s.Trouble("events", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "plugin")
			Expect(s.answer("", "size", "pool", "--from-cluster", "--boot-time", "2m", "--end", end)).To(ContainSubstring("note: no right to list events"))
			Expect(s.written()).To(BeZero())
			_, err = s.answer("", "size", "pool", "--from-cluster", "--boot-time", "2m", "--target-kubeconfig", "none", "--machine", "cpu=4,memory=1Gi")
			Expect(err).To(MatchError(ContainSubstring("--from-cluster needs the cluster with the pods")))
		})

		It("plays machines that boot slowly with the patience of its manager, unless a flag overrides it", func() {
			s := newScene(everything)
			s.pool("pool")
			slow := func(args ...string) string {
				GinkgoHelper()
				out, err := s.answer(pods, append([]string{"size", "pool", "-f", "-", "--boot-time", "20m", "--current", "3", "-o", "json"}, args...)...)
				Expect(err).NotTo(HaveOccurred())
				return out
			}
			impatient := slow()
			patient := slow("--reserve-boot-patience", "30m")
			Expect(patient).NotTo(Equal(impatient), "a machine that boots for longer than the patience is given up")
			s.publish("--reserve-boot-patience=30m")
			Expect(slow()).To(Equal(patient))
			Expect(slow("--reserve-boot-patience", "15m")).To(Equal(impatient))
			Expect(s.written()).To(BeZero())
		})

		It("is an error if there is none of that name", func() {
			_, err := newScene(everything).answer(pods, "size", "pool", "-f", "-")
			Expect(err).To(MatchError(ContainSubstring(`machinedeployment "pool": not found; this is the namespace of the kubeconfig; use -n for another one`)))
		})
	})
})
