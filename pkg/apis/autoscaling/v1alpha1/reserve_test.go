// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// reserved is a valid Reserve with other fields in its spec.
func reserved(spec string) map[string]any {
	GinkgoHelper()
	object, over := map[string]any{}, map[string]any{}
	Expect(yaml.Unmarshal([]byte(`{apiVersion: autoscaling.evenkeel.dev/v1alpha1, kind: Reserve, metadata: {name: a}, spec: {pools: {names: [pool]}}}`), &object)).To(Succeed())
	Expect(yaml.Unmarshal([]byte(spec), &over)).To(Succeed())
	for name, value := range over {
		object["spec"].(map[string]any)[name] = value
	}
	return whole(object).(map[string]any)
}

// day is a schedule with other fields.
func day(fields string) string {
	return `schedules: [{name: day, start: "0 7 * * MON-FRI", ` + fields + `}]`
}

var _ = Describe("The schema of a Reserve and its rules", func() {
	DescribeTable("take",
		func(spec string) { Expect(judgedBy("reserves", reserved(spec))).To(BeEmpty()) },
		Entry("what is plain", "{}"),
		Entry("a number", "replicas: 5"),
		Entry("pools by label", "pools: {selector: {matchLabels: {a: b}}}"),
		Entry("all pools", "pools: {selector: {}}"),
		Entry("pools by worker", "pools: {workerPools: [a, b]}"),
		Entry("a schedule with an end", day(`end: "0 19 * * MON-FRI", replicas: 5, timeZone: Europe/Berlin`)),
		Entry("a schedule with a duration", day(`duration: 1h30m, amount: "10%"`)),
		Entry("a schedule of none", day(`duration: 1m, replicas: 0, suspend: true`)),
		Entry("images to prepare", "prepare: [{namespace: shop, images: ['r.example:5000/a/b@sha256:0'], imagePullSecrets: [key]}]"),
	)

	It("have no replicas by default, so that they can be scaled", func() {
		object := reserved("{}")
		Expect(judgedBy("reserves", object)).To(BeEmpty())
		Expect(object["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(0)))
	})

	It("take each kind of workload that can be prepared", func() {
		for _, kind := range v1alpha1.PreparedKinds {
			Expect(judgedBy("reserves", reserved("prepare: [{namespace: shop, workloads: ["+kind+"/web]}]"))).To(BeEmpty(), kind)
		}
	})

	DescribeTable("refuse, and say what to do",
		func(spec, says string) {
			Expect(judgedBy("reserves", reserved(spec)).ToAggregate()).To(MatchError(ContainSubstring(says)))
		},
		Entry("no pools", "pools: {}", "set names, selector or workerPools"),
		Entry("an empty list of pools", "pools: {names: []}", "at least 1 items"),
		Entry("a negative number", "replicas: -1", "greater than or equal to 0"),
		Entry("an amount in words", "amount: lots", "write a count (2), a percentage"),
		Entry("no end", day("replicas: 5"), "set either end or duration"),
		Entry("two ends", day(`replicas: 5, duration: 1h, end: "0 19 * * *"`), "set either end or duration"),
		Entry("no amount", day("duration: 1h"), "set replicas, for example 5, or amount"),
		Entry("four fields", `schedules: [{name: day, start: "0 7 * *", duration: 1h, replicas: 5}]`, "write five fields"),
		Entry("a macro", `schedules: [{name: day, start: "@daily", duration: 1h, replicas: 5}]`, "write five fields"),
		Entry("a duration in days", day("duration: 1d, replicas: 5"), "for example 8h or 1h30m"),
		Entry("a short duration", day("duration: 59s, replicas: 5"), "at least 1m"),
		Entry("the zone of the host", day("duration: 1h, replicas: 5, timeZone: Local"), "IANA database"),
		Entry("nothing to prepare", "prepare: [{namespace: shop}]", "set images or workloads"),
		Entry("no namespace to prepare in", "prepare: [{namespace: '', images: [a]}]", "at least 1 chars long"),
		Entry("a workload of another kind to prepare", "prepare: [{namespace: shop, workloads: [CronJob/web]}]", "should match"),
		Entry("too much to prepare", "prepare: ["+strings.Repeat("{namespace: shop, images: [a]}, ", 11)+"]", "at most 10 items"),
		Entry("a name that is none", `schedules: [{name: "Office Hours", start: "0 7 * * *", duration: 1h, replicas: 5}]`, "should match"),
	)

	DescribeTable("take the amounts that the parser takes, and no others",
		func(text string) {
			_, err := machine.ParseExcess(text)
			wrong := judgedBy("reserves", map[string]any{"apiVersion": "autoscaling.evenkeel.dev/v1alpha1", "kind": "Reserve", "metadata": map[string]any{"name": "a"},
				"spec": map[string]any{"pools": map[string]any{"names": []any{"pool"}}, "amount": text}})
			Expect(len(wrong) == 0).To(Equal(err == nil), "%v %v", wrong, err)
		},
		Entry(nil, "0"), Entry(nil, "2"), Entry(nil, "02"), Entry(nil, "-1"), Entry(nil, "5%"), Entry(nil, "1000%"), Entry(nil, "1001%"), Entry(nil, "5 %"),
		Entry(nil, "cpu=16"), Entry(nil, "cpu=16,memory=64Gi"), Entry(nil, "cpu=10%"), Entry(nil, "nvidia.com/gpu=1"), Entry(nil, "cpu=1.5"), Entry(nil, "cpu=1e3"),
		Entry(nil, "cpu="), Entry(nil, "=1"), Entry(nil, "max(1,5%)"), Entry(nil, "max(1)"), Entry(nil, "max(1,5%"), Entry(nil, "1,5%"), Entry(nil, "max(1,cpu=10%,memory=1Gi)"),
		Entry(nil, "2 "), Entry(nil, "cpu=16, memory=64Gi"), Entry(nil, "min(1,2)"), Entry(nil, "cpu=16m,memory=0.5Gi"),
	)

	It("take every example", func() {
		files, err := filepath.Glob("../../../../examples/reserve-[oq]*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(2))
		for _, file := range files {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			object := map[string]any{}
			first, _, _ := bytes.Cut(text, []byte("\n---\n"))
			Expect(yaml.Unmarshal(first, &object)).To(Succeed())
			Expect(judgedBy("reserves", whole(object).(map[string]any))).To(BeEmpty(), file)
		}
	})
})
