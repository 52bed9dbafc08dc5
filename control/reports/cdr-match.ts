/** Filters of call records apart from their period, as a query has them, and as searches do. */
import { type RawBuilder, sql, type SqlBool } from 'kysely'
import { z } from 'zod'
import {
  attestations,
  directions,
  dispositions,
  verifications,
} from '../../schema/contracts/field-values.ts'
import { MAX_AMOUNT_UNITS, parseMoney } from '../../schema/columns.ts'
import { numberOrText } from '../../schema/rules/numbers.ts'
import { likePattern } from '../http/envelope.ts'
import { text } from '../http/fields.ts'

const wanted = text(255).min(1)

/** Values of one list. */
const MAX_VALUES = 50

/** Several values by comma, each as `read` says; undefined: it is none. */
const listOf = <T>(
  read: (value: string) => T | undefined,
  { message, description }: { readonly message: string; readonly description: string },
) =>
  text(4_000)
    .min(1)
    .transform((written, context): readonly T[] => {
      const values = written.split(',').map((value) => value.trim())
      const found = values.map(read).filter((value) => value !== undefined)
      if (found.length === values.length && found.length <= MAX_VALUES) return found
      context.addIssue({
        code: 'custom',
        message:
          found.length > MAX_VALUES ? `must be at most ${MAX_VALUES} values by comma` : message,
      })
      return z.NEVER
    })
    .optional()
    .describe(`${description} Several by comma: any of them.`)

const integers = (digits: RegExp, kind: string, description: string) =>
  listOf((value) => (digits.test(value) ? Number(value) : undefined), {
    message: `must be ${kind}, several by comma`,
    description,
  })

const wordsOf = <Word extends string>(words: readonly Word[], description: string) =>
  listOf((value) => words.find((word) => word === value), {
    message: `must be of ${words.join(', ')}, several by comma`,
    description,
  })

/** A name may have a comma itself. */
const names = (description: string) =>
  listOf((value) => (value === '' || value.length > 255 ? undefined : value), {
    message: 'must be names, several by comma',
    description,
  }).transform((list) =>
    list === undefined || list.length < 2 ? list : [...list, list.join(', '), list.join(',')],
  )

const limit = (
  pattern: RegExp,
  message: string,
  description: string,
  type: 'integer' | 'number' = 'integer',
) =>
  z
    .string()
    .refine((value) => pattern.test(value), message)
    .transform(Number)
    .optional()
    .meta({ type, description })

const seconds = (what: string) =>
  limit(/^\d{1,9}$/, 'must be whole seconds', `${what}, in seconds, included.`)
const milliseconds = (what: string) =>
  limit(/^\d{1,9}$/, 'must be whole milliseconds', `${what}, in milliseconds, included.`)
const score = (what: string) =>
  limit(/^[1-5](?:\.\d{1,3})?$/, 'must be a MOS from 1 to 5', `${what}, included.`, 'number')

const amount = (what: string, isNegative = false) =>
  z
    .string()
    .transform((value, context) => {
      const micros = parseMoney(value)
      const isInRange = micros !== undefined && Math.abs(micros) <= MAX_AMOUNT_UNITS * 1_000_000
      if (isInRange && (isNegative || micros >= 0)) return micros
      context.addIssue({
        code: 'custom',
        message:
          `must be an amount with at most six decimals, such as "0.25"` +
          (isNegative ? ' or "-0.25"' : ''),
      })
      return z.NEVER
    })
    .optional()
    .describe(`${what}, included, in any currency.`)

const phone = (what: string) =>
  wanted
    .refine((value) => value !== '*', 'must have digits before the *')
    .optional()
    .describe(`${what}, with or without \`+\`. With \`*\` at its end: its beginning.`)

/** Spread into a query schema. All given filters must match. */
export const matchQuery = {
  number: phone('The number of the caller or the called number'),
  caller: phone("The caller's number"),
  called: phone('The called number'),
  extension: names('Numbers of phones, as caller or called.'),
  customer_id: integers(/^[1-9]\d{0,14}$/, 'an id', 'The paying customer.'),
  carrier: names("A carrier's name."),
  node: names('A node: its host, `host:port`, or its SIP URI as records show it.'),
  instance: names('An instance of this platform.'),
  set_id: integers(/^\d{1,9}$/, 'a number', 'A set of the dispatcher.'),
  disposition: wordsOf(dispositions, 'How the call ended.'),
  direction: wordsOf(directions, 'Direction of the call.'),
  code: integers(/^[1-6]\d\d$/, 'a SIP code', 'The `sip_code`.'),
  cause: names('A `hangup_cause` or a `denial_code`, in any case.'),
  call_id: wanted.optional().describe('The SIP Call-ID of the caller’s leg.'),
  tag: wanted
    .regex(/^[A-Za-z][\w.-]*:/, 'must be name:value')
    .optional()
    .describe('A tag of a hook, as `name:value`, in any case.'),
  verification: z
    .enum(verifications)
    .optional()
    .describe('What Identity headers have proved of the caller.'),
  attestation: z
    .enum(attestations)
    .optional()
    .describe('How far a network vouches for the caller’s number.'),
  call_uuid: wanted
    .optional()
    .describe('Any text: nodes choose the uuid of calls that they report.'),
  duration_from: seconds('The shortest `duration`'),
  duration_to: seconds('The longest `duration`'),
  billsec_from: seconds('The shortest `billsec`'),
  billsec_to: seconds('The longest `billsec`'),
  cost_from: amount('The least cost'),
  cost_to: amount('The greatest cost'),
  mos_from: score('The lowest MOS'),
  mos_to: score('The highest MOS'),
  pdd_from: milliseconds('The shortest post-dial delay'),
  pdd_to: milliseconds('The longest post-dial delay'),
  margin_from: amount('The least margin', true),
  margin_to: amount('The greatest margin', true),
  loss: z.enum(['true', 'false']).optional().describe('`true`: with a margin below zero.'),
}

type MatchQuery = z.output<z.ZodObject<typeof matchQuery>>

/** Both ends included; undefined: there is none. */
export type ValueLimits = readonly [from: number | undefined, to: number | undefined]

type Same =
  | 'number'
  | 'caller'
  | 'called'
  | 'extension'
  | 'customer_id'
  | 'carrier'
  | 'node'
  | 'instance'
  | 'set_id'
  | 'disposition'
  | 'direction'
  | 'code'
  | 'cause'
  | 'call_id'
  | 'tag'
  | 'verification'
  | 'attestation'
  | 'call_uuid'

export type CdrMatch = { readonly [name in Same]?: MatchQuery[name] } & {
  readonly [name in 'duration' | 'billsec' | 'cost' | 'mos' | 'pdd' | 'margin']?:
    ValueLimits | undefined
}

/** Undefined when no filter is given. */
export function matchOf(query: MatchQuery): CdrMatch | undefined {
  const { number, caller, called, extension, customer_id, carrier, node, instance, cause } = query
  const { set_id, disposition, direction, code } = query
  const { call_id, call_uuid, tag, verification, attestation } = query
  const below = query.loss === 'true' ? -1 : Infinity
  const margin = limitsOf(query.margin_from, Math.min(query.margin_to ?? Infinity, below))
  const match: CdrMatch = {
    ...{ number, caller, called, extension, customer_id, carrier, node, instance, cause },
    ...{ set_id, disposition, direction, code },
    ...{ call_id, call_uuid, tag, verification, attestation },
    duration: limitsOf(query.duration_from, query.duration_to),
    billsec: limitsOf(query.billsec_from, query.billsec_to),
    cost: limitsOf(query.cost_from, query.cost_to),
    mos: limitsOf(query.mos_from, query.mos_to),
    pdd: limitsOf(query.pdd_from, query.pdd_to),
    margin,
  }
  return Object.values(match).some((value) => value !== undefined) ? match : undefined
}

const limitsOf = (from: number | undefined, to: number | undefined): ValueLimits | undefined =>
  from === undefined && (to === undefined || to === Infinity) ? undefined : [from, to]

/** Numbers are stored normalized, with and without `+`; anything else is stored as dialled. */
export function spellings(number: string): string[] {
  const digits = numberOrText(number).replace(/^\+/, '')
  return [number, digits, `+${digits}`]
}

/**
 * Stored as `sip:host:port;transport=udp`. The filter may end before the port or before the
 * transport.
 */
export function onNode(column: RawBuilder<string>, node: string): RawBuilder<SqlBool> {
  const address = likePattern(node.toLowerCase().replace(/^sips?:/, '')).slice(1, -1)
  const patterns = [':%', ';%', ''].map((rest) => `sip:${address}${rest}`)
  const conditions = patterns.map(
    (pattern) => sql<SqlBool>`lower(${column}) LIKE ${pattern} ESCAPE '\\'`,
  )
  return sql`(${sql.join(conditions, sql` OR `)})`
}
