// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"bytes"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// codecs read JSON in fewer passes than those of a generated client. To find the kind of an object,
// these parse the whole of it, although API servers write the kind first; and they parse a watch
// event, and again the object in it.
type codecs struct {
	serializer.WithoutConversionCodecFactory
	media []runtime.SerializerInfo
}

func newCodecs(scheme *runtime.Scheme, from serializer.CodecFactory) codecs {
	media := slices.Clone(from.SupportedMediaTypes())
	for i, info := range media {
		if info.MediaType != runtime.ContentTypeJSON {
			continue
		}
		objects := json.NewSerializerWithOptions(leadingKind{}, scheme, scheme, json.SerializerOptions{})
		media[i].Serializer = objects
		media[i].StreamSerializer = &runtime.StreamSerializerInfo{
			EncodesAsText: true, Serializer: events{objects}, Framer: framer{info.StreamSerializer.Framer},
		}
	}
	return codecs{serializer.WithoutConversionCodecFactory{CodecFactory: from}, media}
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c codecs) SupportedMediaTypes() []runtime.SerializerInfo { return c.media }

// leadingKind finds apiVersion and kind if an object begins with them.
type leadingKind struct{ json.SimpleMetaFactory }

// Interpret implements json.MetaFactory.
func (l leadingKind) Interpret(data []byte) (*schema.GroupVersionKind, error) {
	version, kind, ok := cutTypeMeta(data)
	if !ok {
		return l.SimpleMetaFactory.Interpret(data)
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, err
	}
	return &schema.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: kind}, nil
}

// cutTypeMeta reads apiVersion and kind from the beginning of an object, in either order.
func cutTypeMeta(data []byte) (version, kind string, ok bool) {
	if version, rest, ok := cutField(data, `{"apiVersion":"`); ok {
		kind, _, ok = cutField(rest, `,"kind":"`)
		return version, kind, ok
	}
	kind, rest, _ := cutField(data, `{"kind":"`)
	version, _, ok = cutField(rest, `,"apiVersion":"`)
	return version, kind, ok
}

// cutField reads a text that follows its name. It returns no rest if the text contains an escape,
// as no kind does.
func cutField(data []byte, name string) (text string, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(data, []byte(name))
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 {
		return "", nil, false
	}
	return string(rest[:end]), rest[end+1:], true
}

// events decode watch events without parsing the object in them, which is decoded later anyway.
type events struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (e events) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, ok := into.(*metav1.WatchEvent); ok {
		if kind, object, ok := cutEvent(data); ok {
			// The caller reuses data for the next event.
			event.Type, event.Object = kind, runtime.RawExtension{Raw: bytes.Clone(object)}
			return event, &schema.GroupVersionKind{}, nil
		}
	}
	return e.Serializer.Decode(data, defaults, into)
}

// cutEvent reads a watch event as API servers write it: its type, its object, and nothing else.
func cutEvent(data []byte) (kind string, object []byte, ok bool) {
	kind, rest, _ := cutField(data, `{"type":"`)
	object, ok = bytes.CutPrefix(rest, []byte(`,"object":`))
	var scanner objectScanner
	end, _ := scanner.scan(object)
	return kind, object[:end], ok && string(bytes.TrimSpace(object[end:])) == "}"
}
