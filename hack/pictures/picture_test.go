// SPDX-License-Identifier: Apache-2.0

package pictures

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestPictures(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Pictures")
}

const head = "title A & B\ndesc One.\ndesc Two.\nsize 200 100\n"

var _ = DescribeTable("A statement draws",
	func(statements string, drawn ...string) {
		svg, err := Render(head + statements)
		Expect(err).NotTo(HaveOccurred())
		for _, d := range drawn {
			Expect(string(svg)).To(ContainSubstring(d))
		}
	},
	Entry("nothing where it is a remark", "# box\n\n", `<title id="title">A &amp; B</title>`, `<desc id="desc">One. Two.</desc>`),
	Entry("a box", "box serve 10 10 110 60 free / now", `<rect class="serve" x="10" y="10" width="100" height="50"`,
		`<text class="bold serve middle" x="60" y="31">free</text>`, `<text class="serve middle" x="60" y="50">now</text>`),
	Entry("machines", "machines reserve 10 10 2", `<rect class="reserve" x="10"`, `<rect class="reserve" x="39"`),
	Entry("an arrow", "arrow 1 2 3 4 5 6", `<path class="arrow" d="M1 2 L3 4 L5 6"/>`),
	Entry("text at a time", "scale linear 100 200 0s 10s\ntext middle 5s 20 now", `<text class="text middle" x="150" y="20">now</text>`),
	Entry("a logarithmic scale", "scale log 20 180 10ms 1s\nticks 10 20 100ms", `d="M100 10 V20"`, `>100 ms</text>`),
	Entry("times", "scale linear 0 200 0s 10s\ntimes fail 20 5.0s 10s : b", `>b</text>`, `>5.0 s · 10 s</text>`, `cx="100"`, `cx="200"`),
)

var _ = DescribeTable("An error names the line of",
	func(statement, what string) {
		_, err := Render(head + statement)
		Expect(err).To(MatchError(And(ContainSubstring("line 5"), ContainSubstring(what))))
	},
	Entry("an unknown statement", "circle 1 2", "no such statement"),
	Entry("an unknown color", "box pink 1 2 3 4", `"pink" is none of`),
	Entry("a number that is none", "box serve 1 2 3 x", `"x"`),
	Entry("too many words", "machines serve 1 2 3 4", `"4" is too much`),
	Entry("a line of one point", "line serve 1 2", "two points"),
	Entry("text wider than its box", "box serve 10 10 30 60 free", "wider than the box"),
	Entry("text wider than the picture", "text right 20 10 free", "wider than the picture"),
)

var _ = It("A picture must have a description", func() {
	Expect(Render("title A\nsize 1 1\n")).Error().To(MatchError(ContainSubstring("missing")))
})

var _ = Describe("The pictures of the documents", func() {
	texts, err := filepath.Glob("../../docs/pictures/*.txt")
	if err != nil || len(texts) == 0 {
		panic("there are no pictures")
	}
	for _, name := range texts {
		It("are XML, and their times are measured: "+filepath.Base(name), func() {
			text, err := os.ReadFile(name)
			Expect(err).NotTo(HaveOccurred())
			svg, err := Render(string(text))
			Expect(err).NotTo(HaveOccurred())
			Expect(readXML(string(svg))).To(Succeed())

			p, err := parsePicture(string(text))
			Expect(err).NotTo(HaveOccurred())
			var pages strings.Builder
			for _, source := range p.sources {
				page, err := os.ReadFile(filepath.Join("../..", source))
				Expect(err).NotTo(HaveOccurred())
				pages.Write(page)
			}
			for _, t := range p.times {
				Expect(pages.String()).To(MatchRegexp(`\b%s\b`, regexp.QuoteMeta(t)))
			}
		})
	}
})

// readXML reads XML to its end.
func readXML(text string) error {
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
