/**
 * The fields of extensions, customers, sets and carriers about the caller that calls show
 * (SPECIFICATION.md §10.7).
 */
import { z } from 'zod'
import {
  forwardedIdentities,
  MAX_LISTED_NUMBERS,
  otherwisePresented,
  presentableNumbers,
  presentedNumbers,
} from '../../schema/rules/caller-rules.ts'
import { rangeOf } from '../../schema/rules/number-ranges.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { RequestScope } from '../auth/tenants.ts'
import { phoneNumber, prefix } from '../http/fields.ts'
import type { Column, Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { overlapping } from './customer-numbers.ts'
import { badReference } from './references.ts'
import { ownsNumber, refusePlatformOnly } from './tenancy.ts'

/** A number that calls show outside. */
export const ownNumber = field.asText(phoneNumber({ least: 3, most: 20 }))

const present = z.enum(presentedNumbers)
const allowed = z.enum(presentableNumbers)
const otherwise = z.enum(otherwisePresented)
const forwarded = z.enum(forwardedIdentities)

const body = z.strictObject({
  present: present
    .nullish()
    .describe(
      'The number that is shown unless the caller asks for another one: `own`: the caller ' +
        'number of the extension, else the default number of the customer; `extension`: its ' +
        'digits; `default`: that of the customer; `as_sent`: the one in the call.',
    ),
  allowed: allowed
    .nullish()
    .describe(
      'Which numbers may be shown: those of who pays (`owned`), these and `numbers` (`list`), or ' +
        '`any`. Only the platform sets `list` and `any`.',
    ),
  numbers: z
    .array(prefix.refine((start) => start !== '', 'must have a digit'))
    .max(MAX_LISTED_NUMBERS)
    .nullish()
    .describe('Numbers, or the first digits of some. Only the platform sets them.'),
  otherwise: otherwise
    .nullish()
    .describe('What becomes of a call whose number may not be shown. `refuse`: it gets 403.'),
  forwarded: forwarded
    .nullish()
    .describe(
      'Who calls when a call is forwarded or transferred: the first caller (`original`), with ' +
        'the own number in Diversion and History-Info, or the own number.',
    ),
  emergency_number: ownNumber.body.nullish().describe('It is shown on emergency calls.'),
})

const view = z.strictObject({
  present: present.nullable(),
  allowed: allowed.nullable(),
  numbers: z.array(z.string()).nullable(),
  otherwise: otherwise.nullable(),
  forwarded: forwarded.nullable(),
  emergency_number: z.string().nullable(),
})

type Rules = z.output<typeof view>
type GivenRules = z.output<typeof body>

const noRules: Rules = {
  present: null,
  allowed: null,
  numbers: null,
  otherwise: null,
  forwarded: null,
  emergency_number: null,
}

/** JSON of the members that are given; null: none is. */
const stored = (column: string): Column => ({
  read: (row) => {
    const text = row[column]
    return typeof text === 'string' ? { ...noRules, ...(JSON.parse(text) as object) } : noRules
  },
  write: (value) => {
    const given = Object.entries((value ?? {}) as Row).filter(
      ([, member]) => member != null && !(Array.isArray(member) && member.length === 0),
    )
    return { [column]: given.length === 0 ? null : JSON.stringify(Object.fromEntries(given)) }
  },
})

export const callerIdentity = field.of(
  { body, view, stored },
  {
    default: {},
    example: noRules,
    about:
      'Rules about the caller that calls show outside. A rule that is absent is that of the next ' +
      'in this order: extension, customer, dispatcher set, carrier.',
  },
)

interface Written {
  readonly caller_identity: GivenRules
}

/**
 * A tenant cannot give itself numbers: it may show its own ones only, and may keep what the
 * platform has written.
 *
 * @param numbers further numbers of the row, by their fields.
 */
export async function refuseForeignCaller(
  store: Store,
  scope: RequestScope,
  { caller_identity: given }: Written,
  before: { readonly caller_identity: Rules } | undefined,
  numbers: readonly (readonly [path: string, given: unknown, before: unknown])[] = [],
): Promise<void> {
  const { tenantId } = scope
  if (tenantId === null) return
  const known = before?.caller_identity ?? noRules
  const { allowed: wanted = null, numbers: listed } = given
  const isWider = wanted === 'list' || wanted === 'any'
  refusePlatformOnly(scope, isWider && wanted !== known.allowed, 'caller_identity.allowed')
  const isOther = JSON.stringify(listed ?? []) !== JSON.stringify(known.numbers ?? [])
  refusePlatformOnly(scope, isOther && (listed ?? []).length > 0, 'caller_identity.numbers')
  const emergency = ['caller_identity.emergency_number', given.emergency_number] as const
  for (const [path, number, stays] of [[...emergency, known.emergency_number], ...numbers] as const)
    if (typeof number === 'string' && number !== stays && !(await isOwn(store, tenantId, number)))
      throw badReference(path, 'is not a number of this tenant')
}

/** A row says whose a number is; without one, the blocks that the platform has listed. */
async function isOwn(store: Store, tenantId: number, number: string): Promise<boolean> {
  const row = await overlapping(store, rangeOf(number))
  return row === undefined ? ownsNumber(store, tenantId, number) : row.tenant_id === tenantId
}
