// SPDX-License-Identifier: Apache-2.0

// Package schedule decides when a schedule is active. A [Cron] is a time that recurs, and a [Window] lasts from each start to the
// next end, or for a duration.
//
// All answers follow from the text of the schedule and the instant that is asked about. Nothing is remembered, so a start that falls
// into an outage counts from the next question on, for the time that is left.
//
// Laws. The tests cite them by number.
//
//  1. A cron time has five fields: minute, hour, day of the month, month, day of the week. Each is *, a number, a name, a range, a list
//     of these, or one of them with a step. If both days are limited, either is enough, as in cron.
//  2. A local time that the clock skips occurs at the moment when the clock has been changed.
//  3. A local time that the clock shows twice occurs the first time. If every hour matches, it occurs both times.
//  4. A window with an end is active from the latest start until the first end after it. A start wins over an end at the same time.
//  5. A window with a duration is active for that much elapsed time after each start, whatever clocks do.
//  6. A window does not change between the instant that is asked about and the next change that is reported.
//  7. Any text is answered within bounded time. A date that never comes is an error.
package schedule
