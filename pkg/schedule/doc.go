// SPDX-License-Identifier: Apache-2.0

// Package schedule decides when a schedule is active. A [Cron] is a recurring time; a [Window]
// lasts from each start until the next end, or for a duration. Nothing is remembered.
//
// Laws:
//
//  1. A cron time has five fields: each is *, a number, a name, a range or a list, optionally with
//     a step. If both day fields are restricted, matching one is enough.
//  2. A local time that the clock skips occurs at the moment of the clock change.
//  3. A local time that occurs twice counts the first time, or both times if every hour matches.
//  4. A window with an end is active from the latest start until the next end; a start that
//     coincides with an end wins. It does not if the clock skipped the time between them.
//  5. A window with a duration is active for that much elapsed time after each start, whatever
//     clocks do.
//  6. A window does not change before the next change that is reported.
//  7. Every text is evaluated in bounded time; a date that never occurs is an error.
package schedule
