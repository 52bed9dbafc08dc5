/** Fields that several resources share: names, amounts, hosts, ports and numbers. */
import { isIPv4, isIPv6 } from 'node:net'
import { z } from 'zod'
import { withoutBrackets } from '../../schema/sip/index.ts'
import { MAX_AMOUNT_UNITS, parseMoney, parseTime } from '../../schema/columns.ts'
import { type Zone, zoneName, zoneProblem } from '../../schema/time-zones.ts'
import { readNumber, readPrefix, withoutPlus } from '../../schema/rules/numbers.ts'

/** No control characters: texts are used in SIP headers and log lines. */
// eslint-disable-next-line no-control-regex -- these are what is refused
const controlCharacter = /[\u0000-\u001f\u007f\u2028\u2029]/

export const text = (maxLength: number) =>
  z
    .string()
    .max(maxLength)
    .refine((value) => !controlCharacter.test(value), 'contains a control character')

/** The name by which users and seed files refer to a resource; unique among its kind. */
/** Certificates: a form has several lines for them. */
export const pem = (maxLength: number) =>
  z.string().min(1).max(maxLength).meta({ contentMediaType: 'application/pem-certificate-chain' })

export const name = text(100)
  .min(1)
  .refine((value) => value === value.trim(), 'starts or ends with a space')

/** A reference to another resource: by id, or by name as in seed files. */
export const reference = z.union([z.int().min(1), name], {
  error: 'must be an id (a number) or a name',
})
export type Reference = z.output<typeof reference>

/** The kinds that bodies refer to. The number of a dispatcher set is not the id of its row. */
export type Referable = 'customer' | 'rate_plan' | 'carrier' | 'dispatcher_set'

/**
 * An amount of money: a JSON number or decimal text, at most six decimals; parsed as micro-units.
 */
export const money = (range: { readonly min?: number; readonly max?: number } = {}) =>
  z.union([z.string(), z.number()], { error: 'must be an amount' }).transform((amount, context) => {
    const micros = parseMoney(amount)
    const { min = 0, max = MAX_AMOUNT_UNITS } = range
    if (micros !== undefined && micros >= min * 1_000_000 && micros <= max * 1_000_000)
      return micros
    context.addIssue({
      code: 'custom',
      message: `must be an amount from ${min} to ${max} with at most six decimals, such as "0.25"`,
    })
    return z.NEVER
  })

/** ISO 4217. */
export const currency = z
  .string()
  .regex(/^[A-Z]{3}$/, 'must be three capital letters, such as "USD"')

/**
 * An RFC 3339 date-time, or a date, which is its first moment in UTC; parsed as milliseconds UTC.
 */
export const time = z.string().transform(readTime).meta({ format: 'date-time' })

/** The same in a query, where an unescaped `+` arrives as a space. */
export const queryTime = z
  .string()
  .transform((value, context) => readTime(unescaped(value), context))
  .meta({ format: 'date-time' })

/** A moment, or the midnight of a date, given as if it were UTC, whose zone is found out later. */
export type ZonedTime = number | { readonly localDate: number }

/** As `time`; a date is its first moment in a zone. */
export const zonedTime = z.string().transform(readZonedTime).meta({ format: 'date-time' })

export const zonedQueryTime = z
  .string()
  .transform((value, context) => readZonedTime(unescaped(value), context))
  .meta({ format: 'date-time' })

function readZonedTime(value: string, context: z.RefinementCtx): ZonedTime {
  const ms = readTime(value, context)
  return isDate(value) ? { localDate: ms } : ms
}

export const momentIn = (given: ZonedTime, zone: Zone): number =>
  typeof given === 'number' ? given : zone.momentOf(given.localDate)

const unescaped = (value: string): string => value.replace(/ (?=\d\d:\d\d$)/, '+')
const isDate = (value: string): boolean => /^\d{4}-\d\d-\d\d$/.test(value)

function readTime(value: string, context: z.RefinementCtx): number {
  const ms = parseTime(isDate(value) ? `${value}T00:00:00Z` : value)
  if (ms !== undefined) return ms
  const message = 'must be an RFC 3339 date-time, or a date such as 2026-11-22'
  context.addIssue({ code: 'custom', message })
  return z.NEVER
}

/** An IANA time zone, as the data of `Intl` spells it. */
export const timeZone = z
  .string()
  .max(60)
  .transform((name, context) => {
    const found = zoneName(name)
    if (found === undefined) context.addIssue({ code: 'custom', message: zoneProblem })
    return found ?? z.NEVER
  })
  .meta({ example: 'Europe/Berlin' })

/** The name of a period of a rate plan. */
export const periodName = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9 _-]{0,38}[a-z0-9])?$/,
    'must be 1 to 40 lower-case letters, digits, and inner hyphens, underscores or spaces',
  )

export const transport = z.enum(['udp', 'tcp', 'tls'])

export const port = z.int().min(1).max(65_535)

const labels = /^(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*$/

/**
 * A host name, normalized to lower case without the final dot. A last label of digits, or of
 * hexadecimal ones after 0x, is an IPv4 address in another notation.
 */
function isHostName(host: string): boolean {
  return host.length <= 253 && labels.test(host) && !/(?:^|\.)(?:\d+|0x[\da-f]*)$/.test(host)
}

const everywhere = new Set(['0.0.0.0', '::', '255.255.255.255'])

/** A destination of SIP requests: IPv4 address, FQDN, or IPv6 address (brackets are removed). */
export const host = z
  .string()
  .max(255)
  .transform((value) => withoutBrackets(value.toLowerCase()).replace(/(?<=[a-z0-9])\.$/, ''))
  .refine(
    (value) => (isIPv4(value) || isIPv6(value) || isHostName(value)) && !everywhere.has(value),
    'must be an IPv4 address, an IPv6 address or a fully qualified domain name',
  )

/** `sip:user@host:5060;transport=tcp`: a third party's address to which calls can be sent. */
export const sipUri = z
  .string()
  .refine(
    (value) => host.safeParse(sipUriShape.exec(value)?.[1]).success,
    'must be a SIP URI such as "sip:user@host:5060;transport=tcp", over udp, tcp or tls',
  )

const sipUriShape = new RegExp(
  String.raw`^sip:(?:[\w.!~*'()&=+$,;?/%#-]{1,128}@)?(\[[\da-f:.]{2,45}\]|[\w.-]{1,253})` +
    String.raw`(?::[1-9]\d{0,4})?(?:;transport=(?:udp|tcp|tls))?$`,
  'i',
)

/** A SIP domain, as in a Request-URI or a realm. */
export const domain = z
  .string()
  .max(253)
  .transform((value) => value.toLowerCase().replace(/\.$/, ''))
  .refine((value) => isHostName(value) || isIPv4(value), 'must be a domain name')

/** The characters in which people write numbers, including those that `readNumber` drops. */
const numberSpelling = /^[-+0-9*#.() ]*$/
const maxSpellingLength = 128

/**
 * A telephone number in any notation, normalized; `least` and `most` bound its digits, `*` and `#`.
 */
export function phoneNumber(
  { least, most }: { readonly least: number; readonly most: number },
  message = `must be ${least} to ${most} digits, * or #`,
) {
  return z
    .string()
    .max(maxSpellingLength)
    .regex(numberSpelling, message)
    .transform((spelling, context) => {
      const { kind, text: number } = readNumber(spelling)
      const { length } = number.replace('+', '')
      if (kind === 'number' && length >= least && length <= most) return number
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    })
}

/** A prefix of telephone numbers, without a leading `+`; the empty prefix matches every number. */
export const prefix = z
  .string()
  .max(maxSpellingLength)
  .transform((spelling, context) => {
    const read = readPrefix(spelling)
    if (read.kind === 'prefix') return withoutPlus(read.text)
    context.addIssue({ code: 'custom', message: read.message })
    return z.NEVER
  })

/** A calling number in any notation, normalized; or the user part of a SIP address. */
export const numberOrUserName = z
  .string()
  .regex(/^[0-9A-Za-z*#+._() -]{1,64}$/, 'must be a number or a SIP user name')
  .transform((spelling, context) => {
    const { kind, text } = readNumber(spelling)
    if (kind === 'number' || /^[0-9A-Za-z*#+._-]+$/.test(text)) return text
    context.addIssue({ code: 'custom', message: 'must be a number or a SIP user name' })
    return z.NEVER
  })

/** 0: unlimited. */
export const limit = z.int().min(0).max(1_000_000)

export const isAddress = (value: string): boolean => isIPv4(value) || isIPv6(value)
