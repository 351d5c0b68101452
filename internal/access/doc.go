// SPDX-License-Identifier: Apache-2.0

// Package access lets informers wait for rights that the process may lack.
//
// An informer that may not list its kind tries again every few seconds for as long as the process
// runs. It logs each refusal and loads the API server. With Rights, the refused request waits and
// is repeated now and then, and controllers can find out what is missing and work without it.
//
// Laws:
//
//  1. A right counts as missing from the second refusal on. A single refusal may come from an API
//     server that has just started, or from a Role that is being created.
//  2. While a right is missing, it is requested once every 10 minutes. Each change is logged once.
//  3. A waiting request ends with its context.
//  4. Only a refusal for lack of a right makes a request wait. The informer sees every other
//     answer.
package access
