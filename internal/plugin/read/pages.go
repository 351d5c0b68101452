// SPDX-License-Identifier: Apache-2.0

package read

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// pageSize is how many objects are requested at once: a page of the largest pods takes about 100 MiB
// while it is read.
const pageSize = 250

// Pages returns a pager that limits how long each request may take. An API server keeps a list for some
// minutes only. If reading its pages takes longer, the rest is that of a newer list, as the server
// offers.
func Pages(patience time.Duration, list pager.ListPageFunc) *pager.ListPager {
	one := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return list(ctx, o)
	}
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		page, err := one(ctx, o)
		if o.Continue = continuation(err); o.Continue != "" {
			return one(ctx, o)
		}
		return page, err
	})
	pages.PageSize, pages.PageBufferSize = pageSize, 1
	return pages
}

// continuation returns how to go on after a list has expired; empty if that is not possible, or there
// is another error.
func continuation(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
