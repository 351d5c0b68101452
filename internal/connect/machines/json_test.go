// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/scheme"
)

// generated is how a generated client reads JSON, ours is how clients of package connect do.
var generated, ours = jsonOf(scheme.Codecs.WithoutConversion()), jsonOf(machines.NewCodecs(scheme.Scheme, scheme.Codecs))

func jsonOf(all runtime.NegotiatedSerializer) runtime.SerializerInfo {
	info, _ := runtime.SerializerInfoForMediaType(all.SupportedMediaTypes(), runtime.ContentTypeJSON)
	return info
}

// read returns what a serializer makes of data, as text.
func read(from runtime.Decoder, data string, into runtime.Object) string {
	object, _, err := from.Decode([]byte(data), nil, into)
	if err != nil {
		return "an error"
	}
	return jsonText(object)
}

func jsonText(value any) string {
	text, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// machineEvent is an event of a MachineDeployment of a usual size.
var machineEvent = `{"type":"MODIFIED","object":{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineDeployment","metadata":{"name":"a","annotations":{` +
	strings.TrimSuffix(strings.Repeat(`"key":"some text that is as long as they often are",`, 40), ",") + "}}}}\n"

var _ = Describe("Objects", func() {
	DescribeTable("are read as by a generated client", func(data string) {
		for _, into := range []runtime.Object{nil, &v1alpha1.MachineDeployment{}} {
			Expect(read(ours.Serializer, data, into)).To(Equal(read(generated.Serializer, data, into)))
		}
	},
		Entry("the version first", `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineDeployment","metadata":{"name":"a"}}`),
		Entry("the kind first", `{"kind":"MachineDeployment","apiVersion":"machine.sapcloud.io/v1alpha1","metadata":{"name":"a"}}`),
		Entry("another kind than expected", `{"kind":"Status","apiVersion":"v1","message":"no"}`),
		Entry("the kind last", `{"apiVersion":"machine.sapcloud.io/v1alpha1","items":[],"kind":"MachineDeploymentList"}`),
		Entry("only a version", `{"apiVersion":"machine.sapcloud.io/v1alpha1"}`),
		Entry("only a kind", `{"kind":"MachineDeployment"}`),
		Entry("neither", `{"metadata":{"name":"a"}}`),
		Entry("with spaces", `{ "kind": "MachineDeployment", "apiVersion": "machine.sapcloud.io/v1alpha1"}`),
		Entry("an escape in the kind", `{"kind":"Machine\u0044eployment","apiVersion":"machine.sapcloud.io/v1alpha1"}`),
		Entry("an escaped quote in the version", `{"apiVersion":"a\",\"kind\":\"b","kind":"MachineDeployment"}`),
		Entry("a version with too many slashes", `{"apiVersion":"a/b/c","kind":"MachineDeployment"}`),
		Entry("an unknown kind", `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"Unheard"}`),
		Entry("that end early", `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineDeployment","metadata":{"na`),
		Entry("that end in the kind", `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"Machine`),
		Entry("that end after the version", `{"apiVersion":"machine.sapcloud.io/v1alpha1"`),
		Entry("empty", ``),
		Entry("no object", `[]`),
	)
})

var _ = Describe("The kind of an object that begins with it", func() {
	DescribeTable("is found without parsing the object", func(data string) {
		_, kind, err := ours.Serializer.Decode([]byte(data), nil, nil)
		Expect(runtime.IsNotRegisteredError(err)).To(BeTrue(), "%v", err)
		Expect(*kind).To(Equal(v1alpha1.SchemeGroupVersion.WithKind("Unheard")))
	},
		Entry("the version first", `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"Unheard","metadata":no JSON`),
		Entry("the kind first", `{"kind":"Unheard","apiVersion":"machine.sapcloud.io/v1alpha1","metadata":no JSON`),
	)
})

var _ = Describe("Watch events", func() {
	DescribeTable("are divided without parsing the object in them", func(end string) {
		event, none := &metav1.WatchEvent{}, &schema.GroupVersionKind{}
		object, kind, err := ours.StreamSerializer.Decode([]byte(`{"type":"ADDED","object":{no JSON}`+end), nil, event)
		Expect(err).NotTo(HaveOccurred())
		Expect(object).To(BeIdenticalTo(event))
		Expect(kind).To(Equal(none))
		Expect(*event).To(Equal(metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: []byte("{no JSON}")}}))
	},
		Entry("as they are sent", "}"),
		Entry("with line breaks", "\n}\n"),
	)

	It("are divided even if they are of no type", func() {
		event := &metav1.WatchEvent{}
		_, _, err := ours.StreamSerializer.Decode([]byte(`{"type":"","object":{no JSON}}`), nil, event)
		Expect(err).NotTo(HaveOccurred())
		Expect(*event).To(Equal(metav1.WatchEvent{Object: runtime.RawExtension{Raw: []byte("{no JSON}")}}))
	})

	It("are nothing else", func() {
		object, _, err := ours.StreamSerializer.Decode([]byte(`{"type":"ADDED","object":{"a":1}}`), nil, &v1alpha1.MachineDeployment{})
		Expect(err).NotTo(HaveOccurred())
		Expect(object).To(BeAssignableToTypeOf(&v1alpha1.MachineDeployment{}))
	})

	DescribeTable("are read as by a generated client", func(data string) {
		Expect(read(ours.StreamSerializer, data, &metav1.WatchEvent{})).To(Equal(read(generated.StreamSerializer, data, &metav1.WatchEvent{})))
	},
		Entry("as they are sent", `{"type":"ADDED","object":{"kind":"Machine"}}`+"\n"),
		Entry("with a line break behind the object", `{"type":"MODIFIED","object":{"kind":"Machine"}`+"\n}\n"),
		Entry("with braces, quotes and backslashes in texts", `{"type":"ADDED","object":{"a":"}","b":"\"}","c":"\\","d":{"e":["{"]}}}`),
		Entry("with another field after the object", `{"type":"ADDED","object":{"a":1},"more":{"b":2}}`),
		Entry("with another field before the object", `{"type":"ADDED","more":1,"object":{"a":1}}`),
		Entry("the object first", `{"object":{"a":1},"type":"DELETED"}`),
		Entry("with spaces", `{ "type": "ADDED", "object": {"a": 1} }`),
		Entry("without an object", `{"type":"BOOKMARK"}`),
		Entry("with null", `{"type":"ADDED","object":null}`),
		Entry("with a text for an object", `{"type":"ADDED","object":"}"}`),
		Entry("with an escape in the type", `{"type":"\u0041DDED","object":{"a":1}}`),
		Entry("that end in the object", `{"type":"ADDED","object":{"a":1`),
		Entry("that end in a text", `{"type":"ADDED","object":{"a":"b`),
		Entry("that end after the object", `{"type":"ADDED","object":{"a":1}`),
		Entry("that end in the type", `{"type":"ADD`),
	)

	It("are read as by a generated client, whatever the object is", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			field := rapid.StringOf(rapid.SampledFrom([]rune(`{}"\:,ä`)))
			object := jsonText(rapid.MapOf(field, rapid.MapOf(field, field)).Draw(t, "object"))
			data := `{"type":"ADDED","object":` + object + `}` + rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
			event := &metav1.WatchEvent{}
			_, _, err := ours.StreamSerializer.Decode([]byte(data), nil, event)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(event.Object.Raw)).To(Equal(object))
			Expect(read(ours.StreamSerializer, data, &metav1.WatchEvent{})).To(Equal(read(generated.StreamSerializer, data, &metav1.WatchEvent{})))
		})
	})

	It("keep what they contain when the next one arrives in the same memory", func() {
		data, event := []byte(`{"type":"ADDED","object":{"a":1}}`), &metav1.WatchEvent{}
		_, _, err := ours.StreamSerializer.Decode(data, nil, event)
		Expect(err).NotTo(HaveOccurred())
		copy(data, strings.Repeat("x", len(data)))
		Expect(event.Type).To(Equal("ADDED"))
		Expect(string(event.Object.Raw)).To(Equal(`{"a":1}`))
	})
})

// BenchmarkEvent decodes an event of a machine and the object in it.
func BenchmarkEvent(b *testing.B) {
	for name, media := range map[string]runtime.SerializerInfo{"ours": ours, "generated": generated} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				event := &metav1.WatchEvent{}
				if _, _, err := media.StreamSerializer.Decode([]byte(machineEvent), nil, event); err != nil {
					b.Fatal(err)
				}
				if _, _, err := media.Serializer.Decode(event.Object.Raw, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
