/** How calls hunt after an answer of a carrier (SPECIFICATION.md §10.4). */
import { z } from 'zod'
import {
  answerMatch,
  isShownStatus,
  maxAnswerMatches,
  maxHuntingAttempts,
  maxHuntingSeconds,
  maxMappedAnswers,
} from '../../schema/rules/hunting.ts'
import { redirectPolicies } from '../../schema/contracts/hunting.ts'
import { isKnownStatus } from '../../schema/sip/index.ts'
import { text } from '../http/fields.ts'
import type { Column, Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'

const WORDS = 'must be a status (503), a class (5xx) or a cause (Q.850;cause=34)'

const match = z
  .string()
  .max(32)
  .transform((given, context) => {
    const known = answerMatch(given)
    if (known !== undefined) return known
    context.addIssue({ code: 'custom', message: WORDS })
    return z.NEVER
  })

const matches = z.array(match).max(maxAnswerMatches)

const status = z
  .int()
  .min(400)
  .max(699)
  .refine(
    (given) => isShownStatus(given) && isKnownStatus(given),
    'must be a registered status of a refusal, and no challenge (401, 407)',
  )

const mapped = z.strictObject({
  match: match.describe('A status, a class such as `5xx`, or a cause such as `Q.850;cause=21`.'),
  status: status.describe('The status that the caller gets instead.'),
  reason: text(64).min(1).nullish().describe('Absent: the usual phrase of the status.'),
})

const body = z.strictObject({
  next_on: matches
    .nullish()
    .describe(
      'Answers after which the next gateway is tried: statuses (`404`), classes (`5xx`), Q.850 ' +
        'causes of a Reason header (`Q.850;cause=34`). Absent: 408, 500 and 502 to 504.',
    ),
  stop_on: matches
    .default([])
    .describe('Answers after which no other gateway is tried, whatever `next_on` says.'),
  max_attempts: z
    .int()
    .min(1)
    .max(maxHuntingAttempts)
    .nullish()
    .describe('INVITEs of a call that is sent to this carrier, in all. Absent: no limit.'),
  max_seconds: z
    .int()
    .min(1)
    .max(maxHuntingSeconds)
    .nullish()
    .describe('No gateway is tried later than this after the first one. Absent: no limit.'),
  redirects: z
    .enum(redirectPolicies)
    .default('refuse')
    .describe(
      '`follow`: its 3xx lead to gateways of carriers that the routes of the caller lead to.',
    ),
  answers: z
    .array(mapped)
    .max(maxMappedAnswers)
    .default([])
    .describe('What callers get in place of its answers; the first that matches counts.'),
})

export const huntingView = z.strictObject({
  next_on: z.array(z.string()).nullable(),
  stop_on: z.array(z.string()),
  max_attempts: z.int().nullable(),
  max_seconds: z.int().nullable(),
  redirects: z.enum(redirectPolicies),
  answers: z.array(
    z.strictObject({ match: z.string(), status: z.int(), reason: z.string().nullable() }),
  ),
})

const usual: z.output<typeof huntingView> = {
  next_on: null,
  stop_on: [],
  max_attempts: null,
  max_seconds: null,
  redirects: 'refuse',
  answers: [],
}

/** JSON of the members that differ from the usual ones; null: none does. */
const stored = (column: string): Column => ({
  read: (row) => {
    const written = row[column]
    return typeof written === 'string' ? { ...usual, ...(JSON.parse(written) as object) } : usual
  },
  write: (value) => {
    const { answers = [], ...rest } = (value ?? {}) as Partial<z.output<typeof body>>
    const all = {
      ...rest,
      answers: answers.map((each) => ({ ...each, reason: each.reason ?? null })),
    }
    const given = Object.entries(all).filter(([name, member]) => !isUsual(name, member))
    return { [column]: given.length === 0 ? null : JSON.stringify(Object.fromEntries(given)) }
  },
})

const isUsual = (name: string, value: unknown): boolean =>
  JSON.stringify(value ?? null) === JSON.stringify((usual as Row)[name])

export const hunting = field.of(
  { body, view: huntingView, stored },
  {
    default: { stop_on: [], redirects: 'refuse', answers: [] },
    example: {
      ...usual,
      stop_on: ['Q.850;cause=17'],
      max_seconds: 8,
      answers: [{ match: '503', status: 480, reason: null }],
    },
    about: 'How a call goes on when this carrier does not take it.',
  },
)
