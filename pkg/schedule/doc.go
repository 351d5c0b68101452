// SPDX-License-Identifier: Apache-2.0

// Package schedule decides when a schedule is active. A [Cron] is a recurring time; a [Window]
// lasts from each start until the next end, or for a duration.
//
// Laws:
//
//  1. A cron time has five fields: *, numbers, names, ranges and lists, optionally with a step. Of
//     two restricted day fields, one must match.
//  2. A local time that the clock skips occurs at the moment of the clock change.
//  3. A local time that occurs twice counts the first time, or both times if every hour matches.
//  4. A window with an end is active from the latest start until the next end. A start that
//     coincides with an end wins, unless the clock skipped the time between.
//  5. A window with a duration is active for that much elapsed time after each start.
//  6. A window does not change before the next change that is reported.
//  7. Every text is evaluated in bounded time. A date that never occurs is an error.
package schedule
