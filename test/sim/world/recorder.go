// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
)

// Recorder writes events at once, as a client like any other, and without goroutines.
type Recorder struct {
	record.EventRecorder
	Core kubernetes.Interface
}

// Event writes an event.
func (r *Recorder) Event(object runtime.Object, kind, reason, message string) {
	about := referenceTo(object)
	_, _ = r.Core.CoreV1().Events(about.Namespace).Create(context.Background(), &corev1.Event{ // lost, as events may be
		ObjectMeta:     metav1.ObjectMeta{GenerateName: about.Name + "-", Namespace: about.Namespace},
		InvolvedObject: *about, Type: kind, Reason: reason, Message: message,
	}, metav1.CreateOptions{})
}

// Eventf writes an event with a formatted message.
func (r *Recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func referenceTo(object runtime.Object) *corev1.ObjectReference {
	if reference, ok := object.(*corev1.ObjectReference); ok {
		return reference
	}
	meta := object.(metav1.Object) // all that events are about have it
	return &corev1.ObjectReference{Kind: reflect.TypeOf(object).Elem().Name(), Name: meta.GetName(), Namespace: meta.GetNamespace()}
}
