// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	mcmstatus "github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// MCM finds the code in an error's text by counting brackets. A message with brackets of its own
// would make the code unreadable, which costs minutes.
var unbracket = strings.NewReplacer("[", "(", "]", ")")

// refuse returns an error that MCM can decode.
func refuse(code codes.Code, format string, args ...any) error {
	cause := fmt.Errorf(format, args...)
	return mcmstatus.WrapError(code, unbracket.Replace(cause.Error()), cause)
}

// refuseFor wraps an error of the API server. MCM retries after 5 s for all codes used here, except
// for those that only a user can resolve.
func refuseFor(what string, err error) error {
	return refuse(codeOf(err), "%s: %w", what, err)
}

func codeOf(err error) codes.Code {
	switch {
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return codes.DeadlineExceeded
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return codes.InvalidArgument
	case apierrors.IsForbidden(err):
		return codes.PermissionDenied
	case apierrors.IsUnauthorized(err):
		return codes.Unauthenticated
	case apierrors.IsConflict(err):
		return codes.Aborted
	default:
		return codes.Unavailable
	}
}
