// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func refusal(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

func unknownPath(path string) error {
	return refusal(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource: "+path)
}

func unsupported(message string) error {
	return refusal(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, message)
}

func (r *request) notFound() error {
	return apierrors.NewNotFound(r.table.gvr.GroupResource(), r.Name)
}

func (r *request) conflict(err error) error {
	return apierrors.NewConflict(r.table.gvr.GroupResource(), r.Name, err)
}

func (r *request) invalid(errs ...*field.Error) error {
	return apierrors.NewInvalid(r.table.gvk.GroupKind(), r.Name, errs)
}
