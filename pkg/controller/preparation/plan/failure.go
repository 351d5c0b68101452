// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Label, on a pod that pulls images, is the key of its wish.
const Label = v1alpha1.AnnotationPrefix + "preparation"

// maxMessage is how many characters of a kubelet's message are passed on.
const maxMessage = 300

// Judge reads from its status whether a pod has all images, and why not.
func Judge(pod *corev1.Pod) (done, over bool, failure *Failure) {
	switch pod.Status.Phase {
	case corev1.PodFailed, corev1.PodSucceeded:
		text := cmp.Or(pod.Status.Message, "it has ended")
		if pod.Status.Reason == "Evicted" {
			return false, true, &Failure{NoSpace, limited(text)}
		}
		return false, true, &Failure{PullFailed, limited(text)}
	}
	for _, c := range pod.Status.ContainerStatuses {
		switch w := c.State.Waiting; {
		case c.State.Running != nil:
			return true, false, nil
		case w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing":
			return false, false, &Failure{reasonOf(w.Reason + " " + w.Message), limited(cmp.Or(w.Message, w.Reason))}
		}
	}
	return false, false, nil
}

// reasonOf tells failures apart by words that runtimes and registries use.
func reasonOf(message string) FailureReason {
	text := strings.ToLower(message)
	for _, one := range []struct {
		reason FailureReason
		words  []string
	}{
		{NoSpace, []string{"no space left", "disk quota exceeded"}},
		{NoAccess, []string{"unauthorized", "forbidden", "authorization failed", "access denied", "no basic auth", "unable to retrieve some image pull secrets"}},
		{ImageNotFound, []string{"not found", "manifest unknown", "name unknown", "invalidimagename", "couldn't parse image", "invalid reference", "no match for platform"}},
	} {
		for _, word := range one.words {
			if strings.Contains(text, word) {
				return one.reason
			}
		}
	}
	return PullFailed
}

func limited(text string) string {
	if len(text) > maxMessage {
		return strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}
