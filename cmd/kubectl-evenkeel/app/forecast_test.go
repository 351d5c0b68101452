// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/app"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// kubeconfig leads to a scene.
const kubeconfig = `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "http://sim"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`

// answer is the plugin with these arguments, and with something typed into it.
func (s scene) answer(in string, args ...string) (out string, err error) {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(path, []byte(kubeconfig), 0o600)).To(Succeed())
	var stdout bytes.Buffer
	root := app.RootOn(genericiooptions.IOStreams{In: strings.NewReader(in), Out: &stdout, ErrOut: &stdout}, s.ConfigFor("plugin"))
	root.SetArgs(append([]string{"--kubeconfig", path}, args...))
	err = root.ExecuteContext(GinkgoT().Context())
	return stdout.String(), err
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
		Entry("nothing where there should be a change", "read -: there is no document", "", "-f", "-"),
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
		Expect(strings.Count(out, "Note: cannot read the progress, trying again: ")).To(Equal(1))
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
