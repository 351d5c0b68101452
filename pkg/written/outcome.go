// SPDX-License-Identifier: Apache-2.0

package written

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Result is what is known about a write once its request has ended.
type Result string

const (
	// Done: the API server stored the write.
	Done Result = "Done"
	// Refused: the API server read the request and rejected it. Nothing was stored, and the same
	// request fails again while rights, policies and stored objects stay as they are.
	Refused Result = "Refused"
	// Conflict: the API server found another object or another version than the write requires. The
	// stored object may be the result of an earlier attempt of the same request, so read it and
	// decide again.
	Conflict Result = "Conflict"
	// Unknown: the write may have taken effect, or may still do so. Read the object to find out.
	Unknown Result = "Unknown"
)

// Outcome classifies a write by the error that its client returned.
func Outcome(err error) Result {
	if err == nil {
		return Done
	}
	code, spoke := answerOf(err)
	switch {
	case !spoke, code < 400, code >= 500:
		return Unknown
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return Unknown
	case code == http.StatusConflict:
		return Conflict
	}
	return Refused
}

// Answered reports whether a read of one object revealed what is stored: the object, or that it
// does not exist. A read that was denied, throttled or lost reveals neither.
func Answered(err error) bool {
	if err == nil {
		return true
	}
	code, spoke := answerOf(err)
	return spoke && code == http.StatusNotFound
}

// IgnoreNotFound returns nil for the error of a write whose object is gone.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// answerOf returns the HTTP status of an answer and whether an API server wrote it. An API server
// describes its errors by a Status object; client-go marks everything else, such as the error page
// of a proxy, as unexpected.
func answerOf(err error) (code int32, spoke bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0, false
	}
	return status.Status().Code, !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
