/** How the columns and cells of a carrier's deck are meant: what nobody may guess is said here. */
import { z } from 'zod'
import { text, timeZone } from '../../http/fields.ts'
import { dateFormatProblem, readDate } from './deck-dates.ts'

/** Columns of a deck that are read. */
export const deckColumns = [
  'prefix',
  'country_code',
  'area_code',
  'description',
  'rate_per_minute',
  'connect_fee',
  'first_increment',
  'first_rate_per_minute',
  'increment',
  'increments',
  'blocked',
  'period',
  'effective_from',
  'effective_to',
] as const

export type DeckColumn = (typeof deckColumns)[number]

/** A number counts the columns from 1; a text is the header of the column, in any case. */
const columnReference = z.union([z.int().min(1).max(256), text(100).min(1)], {
  error: 'must be the number of a column (from 1), or its header',
})

const digits = (most: number) =>
  z.string().regex(new RegExp(`^\\d{1,${most}}$`), `must be 1 to ${most} digits`)

const columns = z.strictObject({
  prefix: columnReference.optional(),
  country_code: columnReference.optional(),
  area_code: columnReference.optional(),
  description: columnReference.optional(),
  rate_per_minute: columnReference,
  connect_fee: columnReference.optional(),
  first_increment: columnReference.optional(),
  first_rate_per_minute: columnReference.optional(),
  increment: columnReference.optional(),
  increments: columnReference
    .optional()
    .describe('First and further increment in one cell, such as `30/6`.'),
  blocked: columnReference.optional(),
  period: columnReference.optional().describe('Period of the plan, such as `off-peak`.'),
  effective_from: columnReference.optional(),
  effective_to: columnReference.optional(),
})

const encodings = ['utf-8', 'utf-16le', 'utf-16be', 'windows-1252'] as const
const separators = [',', ';', 'tab', '|'] as const

const MAX_SKIPPED_LINES = 100
const MAX_HEADER_LINE = 100

const isDate = (text: string): boolean => typeof readDate(text, { time_zone: 'UTC' }) === 'number'

export const deckMapping = z
  .strictObject({
    columns,
    header_line: z
      .int()
      .min(0)
      .max(MAX_HEADER_LINE)
      .optional()
      .describe('Line of the header; 0: there is none. Absent: the first line with all headers.'),
    sheet: z
      .union([z.int().min(1).max(100), text(100).min(1)])
      .optional()
      .describe('Sheet of a workbook, by number (from 1) or name. Absent: the first.'),
    encoding: z.enum(encodings).optional().describe('Absent: as the bytes say.'),
    separator: z.enum(separators).optional().describe('Absent: as the first lines say.'),
    decimal: z.enum(['.', ',']).default('.').describe('The sign before the decimals of a price.'),
    thousands: z
      .enum(['', ',', '.', ' ', "'"])
      .default('')
      .describe('The sign between the thousands of a price; empty: there is none.'),
    date_format: z
      .string()
      .max(30)
      .regex(/^(?=.*D)(?=.*M)(?=.*YY)[YMDHms./: ,T-]+$/, 'must be such as "DD.MM.YYYY"')
      .superRefine((format, context) => {
        const message = dateFormatProblem(format)
        if (message !== undefined) context.addIssue({ code: 'custom', message })
      })
      .optional()
      .describe('Such as `DD/MM/YYYY`, `MM/DD/YY`, `D-MMM-YYYY HH:mm`. ISO 8601 is read without.'),
    time_zone: timeZone
      .optional()
      .describe("Zone of dates without one, such as `Europe/Berlin`. Absent: the plan's."),
    effective_from: z
      .string()
      .refine(isDate, 'must be an RFC 3339 date-time, or a date such as 2026-11-22')
      .meta({ format: 'date-time' })
      .optional()
      .describe('When the deck comes into force, for lines that say nothing of it.'),
    country_code: digits(4).optional().describe('Country code before every prefix of the deck.'),
    exit_code: digits(4)
      .default('00')
      .describe('Digits before a country code that are not part of it.'),
    spaces: z
      .enum(['join', 'list'])
      .optional()
      .describe('`list`: spaces stand between prefixes; `join`: inside of one.'),
    trunk_zero: z
      .enum(['keep', 'drop'])
      .optional()
      .describe('Whether the 0 of an area code is dialled after the country code.'),
    more_decimals: z
      .enum(['refuse', 'up', 'nearest', 'down'])
      .default('refuse')
      .describe('How a price with more than six decimals is rounded to six.'),
    skip_lines: z
      .array(z.int().min(1).max(10_000_000))
      .max(MAX_SKIPPED_LINES)
      .optional()
      .describe('Lines to leave out, such as one of totals.'),
  })
  .superRefine(({ columns: named, thousands, decimal, header_line }, context) => {
    if (named.prefix === undefined && named.area_code === undefined)
      context.addIssue({
        code: 'custom',
        path: ['columns', 'prefix'],
        message: 'is required, or area_code with country_code',
      })
    if (named.prefix !== undefined && named.area_code !== undefined)
      context.addIssue({
        code: 'custom',
        path: ['columns', 'area_code'],
        message: 'stands in place of prefix: name one of both',
      })
    if (named.increments !== undefined && (named.increment ?? named.first_increment) !== undefined)
      context.addIssue({
        code: 'custom',
        path: ['columns', 'increments'],
        message: 'stands in place of first_increment and increment',
      })
    const isByNumber = Object.values(named).every((each) => typeof each === 'number')
    if (isByNumber && header_line === undefined)
      context.addIssue({
        code: 'custom',
        path: ['header_line'],
        message: 'is required where columns are named by their numbers; 0: there is no header',
      })
    if (thousands === decimal)
      context.addIssue({
        code: 'custom',
        path: ['thousands'],
        message: 'must differ from decimal',
      })
  })
  .meta({ id: 'DeckMapping' })

export type DeckMapping = z.output<typeof deckMapping>

/** As it was written: defaults stay defaults, and times are texts. */
export const deckMappingDocument = z
  .record(z.string(), z.unknown())
  .superRefine((written, context) => {
    const { error } = deckMapping.safeParse(written)
    for (const { path, message } of error?.issues ?? [])
      context.addIssue({ code: 'custom', path, message })
  })
  .meta({ id: 'WrittenDeckMapping' })

/** As it is written: in a request, and in the plan that remembers it. */
export type WrittenMapping = z.input<typeof deckMapping>
