// SPDX-License-Identifier: Apache-2.0

package picture_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/plugin/picture"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// update writes the pictures anew, to be looked at before they are committed.
var update = flag.Bool("update", false, "write testdata")

func TestPicture(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Picture")
}

// kept is a policy that costs so many machine hours.
func kept(machines int, hours float64, schedules ...v1alpha1.ReserveSchedule) *sizing.Point {
	return &sizing.Point{Policy: sizing.Policy{Machines: machines, Schedules: schedules}, Outcome: sizing.Outcome{ReserveHours: hours}}
}

// answer is for a week with demand at ten on each day, in Berlin.
func answer(pods float64, machines int) size.Answer {
	a := size.Answer{
		MachineDeployment: "pool-z1", TimeZone: "Europe/Berlin", Pods: 70,
		Start: time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC), End: time.Date(2026, time.March, 9, 0, 0, 0, 0, time.UTC),
		Amount: kept(machines, 672),
		Schedule: kept(1, 252, v1alpha1.ReserveSchedule{
			Name: "day", TimeZone: "Europe/Berlin", Start: "55 9 * * MON-FRI", End: "0 11 * * MON-FRI", Replicas: ptr.To(int32(machines)),
		}),
	}
	for day := range a.Week {
		a.Week[day][10] = sizing.Hour{Hours: 1, Pods: pods, Machines: machines}
	}
	return a
}

func drawn(a size.Answer) string { return drawnBy(picture.Week, a) }

func drawnBy(draw func(io.Writer, size.Answer) error, a size.Answer) string {
	GinkgoHelper()
	var text strings.Builder
	Expect(draw(&text, a)).To(Succeed())
	return text.String()
}

// expectGolden compares a picture with that of testdata.
func expectGolden(text, name string) {
	GinkgoHelper()
	path := filepath.Join("testdata", name)
	if *update {
		Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(text).To(Equal(string(want)))
}

// wellFormed reads a document to its end.
func wellFormed(text string) error {
	document := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := document.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

var _ = Describe("A picture of a week", func() {
	It("looks as it should", func() {
		expectGolden(drawn(answer(10, 4)), "week.svg")
	})

	It("shows the schedule as local clocks do: up at 9:55 and down at 11 on Monday, and not on Sunday", func() {
		Expect(drawn(answer(10, 4))).To(And(ContainSubstring(`class="line schedule" d="M0 112.5H49.58V0H55V112.5H`), ContainSubstring(`H535V112.5H840"`)))
	})

	It("has no line for a schedule or an amount if there is none", func() {
		a := answer(10, 4)
		a.Schedule = nil
		Expect(drawn(a)).To(And(ContainSubstring(`class="line fixed"`), Not(ContainSubstring(`class="line schedule"`))))
		a.Amount = nil
		Expect(drawn(a)).NotTo(ContainSubstring(`class="line`))
	})

	It("is well-formed and has no script, whatever a name contains", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			a := answer(rapid.Float64Range(0, 1e6).Draw(t, "pods"), rapid.IntRange(0, 5000).Draw(t, "machines"))
			a.MachineDeployment = rapid.OneOf(rapid.Just(`"><script>alert(1)</script>`), rapid.StringMatching(`[ -~]{0,40}`)).Draw(t, "name")
			text := drawn(a)
			if err := wellFormed(text); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text, "<script") || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Count(text, `class="tick"`) > 12 {
				t.Fatal(text)
			}
		})
	})
})
