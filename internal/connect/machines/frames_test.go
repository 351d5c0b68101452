// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// readFrames reads a stream to its end, with so much room for each part of a frame.
func readFrames(from runtime.SerializerInfo, stream io.Reader, room int) (frames []string, err error) {
	reader := from.StreamSerializer.Framer.NewFrameReader(io.NopCloser(stream))
	frame, part := "", make([]byte, room)
	for {
		n, err := reader.Read(part)
		frame += string(part[:n])
		switch {
		case err == io.ErrShortBuffer:
		case err != nil:
			return frames, err
		default:
			frames, frame = append(frames, frame), ""
		}
	}
}

var _ = Describe("The stream of a watch", func() {
	It("has the frames that a generated client finds, however it arrives and however much room there is", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			field := rapid.StringOf(rapid.SampledFrom([]rune(`{}"\:,[]ä` + "\n")))
			var sent []string
			stream := ""
			for range rapid.IntRange(0, 5).Draw(t, "events") {
				sent = append(sent, rapid.Custom(func(t *rapid.T) string {
					return jsonText(rapid.MapOf(field, rapid.MapOf(field, rapid.SliceOf(field))).Draw(t, "object"))
				}).Draw(t, "event"))
				stream += sent[len(sent)-1] + rapid.SampledFrom([]string{"", "\n", " \r\n\t"}).Draw(t, "between")
			}
			var arriving io.Reader = strings.NewReader(stream)
			if rapid.Bool().Draw(t, "slowly") {
				arriving = iotest.OneByteReader(arriving)
			}
			if rapid.Bool().Draw(t, "with the end in the last piece") {
				arriving = iotest.DataErrReader(arriving)
			}
			room := rapid.IntRange(1, 200).Draw(t, "room")
			frames, err := readFrames(ours, arriving, room)
			Expect(err).To(Equal(io.EOF))
			Expect(frames).To(Equal(sent))
			expected, err := readFrames(generated, strings.NewReader(stream), room)
			Expect(err).To(Equal(io.EOF))
			Expect(frames).To(Equal(expected))
		})
	})

	It("has a frame that is larger than what is read at once", func() {
		large := `{"a":"` + strings.Repeat("}", 100_000) + `"}`
		frames, err := readFrames(ours, strings.NewReader(large+large), 1000)
		Expect(err).To(Equal(io.EOF))
		Expect(frames).To(Equal([]string{large, large}))
	})

	DescribeTable("ends with an error where it breaks", func(stream string, expected int) {
		for _, media := range []runtime.SerializerInfo{ours, generated} {
			frames, err := readFrames(media, strings.NewReader(stream), 1000)
			Expect(frames).To(HaveLen(expected))
			Expect(err).To(Equal(io.ErrUnexpectedEOF))
		}
	},
		Entry("in an event", `{"a":1}{"a":`, 1),
		Entry("after the first byte of an event", `{`, 0),
		Entry("in a text", `{"a":1}{"a":"}`, 1),
		Entry("behind a backslash", `{"a":"\`, 0),
	)

	It("ends with an error where it is not what a watch sends", func() {
		frames, err := readFrames(ours, strings.NewReader(`{"a":1}<html>{"a":2}`), 1000)
		Expect(frames).To(Equal([]string{`{"a":1}`}))
		Expect(err).To(MatchError(ContainSubstring("begins with '<'")))
	})

	It("ends with an error at the first byte that a watch does not send", func() {
		frames, err := readFrames(ours, strings.NewReader("<"), 1000)
		Expect(frames).To(BeEmpty())
		Expect(err).To(MatchError(ContainSubstring("begins with '<'")))
	})

	It("is written as by a generated client", func() {
		for _, media := range []runtime.SerializerInfo{ours, generated} {
			var written strings.Builder
			n, err := media.StreamSerializer.Framer.NewFrameWriter(&written).Write([]byte(`{"a":1}`))
			Expect(err).NotTo(HaveOccurred())
			Expect(n).To(Equal(7))
			Expect(written.String()).To(Equal(`{"a":1}`))
		}
	})

	It("passes on why it was cut, and does not take a part of an event for one", func() {
		cut := errors.New("connection reset")
		reader := ours.StreamSerializer.Framer.NewFrameReader(io.NopCloser(io.MultiReader(strings.NewReader(`{"a":`), iotest.ErrReader(cut))))
		for range 2 {
			n, err := reader.Read(make([]byte, 100))
			Expect(n).To(BeZero())
			Expect(err).To(Equal(cut))
		}
	})
})

// BenchmarkFrames divides a stream into events.
func BenchmarkFrames(b *testing.B) {
	stream := strings.Repeat(machineEvent, 100)
	for name, media := range map[string]runtime.SerializerInfo{"ours": ours, "generated": generated} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if frames, err := readFrames(media, strings.NewReader(stream), 1<<16); len(frames) != 100 {
					b.Fatal(len(frames), err)
				}
			}
		})
	}
}
