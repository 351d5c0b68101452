// SPDX-License-Identifier: Apache-2.0

// Package access lets informers wait for rights that the process may lack, so that controllers can
// work without them.
//
// Laws:
//
//  1. A right counts as missing from the second refusal on, because an API server that starts may
//     refuse once.
//  2. A missing right is requested every 10 minutes, and each change is logged once.
//  3. A waiting request ends with its context.
//  4. Only a refusal for lack of a right makes a request wait.
package access
