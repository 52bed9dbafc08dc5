/**
 * Telephone numbers: whose each one is, what is known of it, and where calls to it go. The single
 * numbers of a customer are also its field `numbers`.
 */
import { sql } from 'kysely'
import { z } from 'zod'
import {
  MAX_BLOCK_DIGITS,
  numberKey,
  type NumberRange,
  rangeColumns,
  rangeOf,
} from '../../schema/rules/number-ranges.ts'

import { first, type Tables } from '../../schema/sql/query.ts'
import { type BeyondScope, fieldsWhere, type WrittenRow } from '../auth/requires.ts'
import type { RequestScope } from '../auth/tenants.ts'
import { ApiError, type RequestProblem } from '../http/api-error.ts'
import { numberOrUserName, phoneNumber, time as moment } from '../http/fields.ts'
import { type Row, time } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { refuseUncounted } from './braked.ts'
import { agentJoin, targetFields, targetOf } from './call-target.ts'
import { overlapping } from './customer-numbers.ts'
import { badReference } from './references.ts'
import { type Definition, ResourceStore, type ViewOf, type Writing } from './resource.ts'
import { rowWith } from './table-rows.ts'
import { ownsRange, refusePlatformOnly } from './tenancy.ts'

const attestations = ['A', 'B', 'C'] as const

const fields = field.table(
  {
    id: field.id,
    number: field.required(field.asText(numberOrUserName), {
      isStoredElsewhere: true,
      about: 'In E.164; of a block, its first number. No number has two rows.',
      example: '+4930100',
    }),
    last_number: field.optional(field.asText(phoneNumber({ least: 3, most: MAX_BLOCK_DIGITS })), {
      isStoredElsewhere: true,
      stored: () => ({ read: lastOf }),
      about: 'The last number of a block, as long as the first one. Absent: a single number.',
    }),
    tenant: field.tenant(),
    customer: field.refersTo('customer', {
      about: 'Who owns it: calls from it are paid by this customer, who may present it.',
    }),
    customer_id: field.idOf(),
    ...targetFields(null),
    display_name: field.optional(field.text(100), {
      about: 'The name that goes with it when it is presented.',
    }),
    emergency_address: field.optional(field.text(200), {
      about: 'Reference of the address that is registered for emergency calls from it.',
    }),
    verified_since: field.optional(
      { body: moment, view: z.iso.datetime(), stored: time },
      {
        column: 'verified_since_at',
        about: 'Since when it is proven that its owner has it. Only the platform sets it.',
      },
    ),
    attestation: field.optional(field.oneOf(attestations), {
      about:
        'How far it is vouched for when it is presented (RFC 8588). Absent: as its owner says. ' +
        'Only the platform sets it.',
    }),
    monthly_fee: field.of(field.amount, { column: 'monthly_fee_micros', default: 0 }),
    is_active: field.of(field.yesOrNo, {
      default: true,
      about: 'An inactive number is neither called (404) nor presented.',
    }),
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  { schemaId: 'PhoneNumber' },
)

export const numberBody = fields.body
type NumberBody = z.output<typeof numberBody>
export type NumberView = ViewOf<typeof fields.view>
type NumberWriting = Writing<typeof numberBody, typeof fields.view>

export const numbers: Definition<typeof numberBody, typeof fields.view> = {
  noun: 'Phone number',
  table: 'phone_number',
  path: '/numbers',
  scope: 'customers',
  fields,
  hasOwnRoutes: true,
  joins: agentJoin,
  selected: sql`ai_agent.name AS agent`,
  found: {
    title: 'phone_number.number',
    beside: ['phone_number.display_name'],
    numbers: ['phone_number.number'],
    holdsNumber: (digits) => sql`phone_number.id IN (SELECT id FROM phone_number AS block
      WHERE block.digits = ${digits.length} AND block.first_number <= ${digits}
        AND block.last_number >= ${digits} ORDER BY block.first_number DESC LIMIT 1)`,
    screen: 'numbers',
  },
  search: ['phone_number.number', 'phone_number.display_name'],
  order: ['phone_number.first_number', 'phone_number.id'],
  limits: ['numbers'],
  store: (deps) => new NumberStore(numbers, deps),
  check: checkedColumns,
  async removing({ customer_id: value }, scope, { store }) {
    if (value !== null) await refuseUncounted(store, { column: 'id', value }, 'all', scope)
  },
  beyond: decidesMore,
  async follow({ engine, ocs }, { id }) {
    const ids = await engine.reloadNumbers({ of: 'number', ids: [id] })
    if (ids.length > 0) await ocs?.reloadCustomers({ of: 'customer', ids })
  },
  general: {
    about: 'Each has an owner and a target.',
    removal: 'Routes decide then.',
    group: 'Routing',
    scopes: ['routes:write', 'rates:write'],
    tools: [],
    hasOwnScreen: true,
  },
  described: {
    tag: 'Routing',
    body: { number: '+4930100', display_name: 'Acme' },
    patch: { is_active: false },
  },
}

class NumberStore extends ResourceStore<typeof numberBody, typeof fields.view> {
  /** A number is known by its digits. */
  override async identify({ number }: NumberBody): Promise<number | undefined> {
    const { first: first_number, digits } = rangeOf(number)
    return rowWith(this.deps.store, 'phone_number', { first_number, digits })
  }
}

/** Where calls go, and what is paid, need the scopes of routes and of money. */
function decidesMore({ before, after }: WrittenRow<NumberView>): readonly BeyondScope[] {
  const isOther = (field: 'set_id' | 'extension' | 'extension_domain' | 'agent') =>
    after[field] !== (before?.[field] ?? null)
  return fieldsWhere(
    [isOther('set_id'), 'set_id', ['routes:write']],
    [isOther('extension') || isOther('extension_domain'), 'extension', ['routes:write']],
    [isOther('agent'), 'agent', ['routes:write']],
    [
      after.monthly_fee !== (before?.monthly_fee ?? 0),
      'monthly_fee',
      ['rates:write', 'wallets:write'],
    ],
  )
}

async function checkedColumns(writing: NumberWriting): Promise<Row> {
  const { body, before, scope, tenantId, columns, deps } = writing
  const { store } = deps
  const stored = await storedNumber(store, before?.id)
  const given = rangeOfBody(body)
  const isSame = stored !== undefined && stored.first === given.first && stored.last === given.last
  if (!isSame) await refuseRange(store, given, scope, before?.id)
  const { customer_id: customerId } = columns
  if (typeof customerId === 'number') await refuseOtherOwner(store, customerId, tenantId)
  const owner = stored?.customerId ?? null
  if (owner !== null && (owner !== customerId || !isSame))
    await refuseUncounted(store, { column: 'id', value: owner }, 'all', scope)
  const isVerifiedAnew = (body.verified_since ?? null) !== (stored?.verifiedSince ?? null)
  refusePlatformOnly(scope, isVerifiedAnew, 'verified_since')
  const isVouchedAnew = (body.attestation ?? null) !== (before?.attestation ?? null)
  refusePlatformOnly(scope, isVouchedAnew, 'attestation')
  const target = await targetOf({ body, before, tenantId, scope, store, table: 'phone_number' })
  return {
    number: isSame ? stored.number : `+${given.first}`,
    ...rangeColumns(given),
    target_type: target?.[0] ?? null,
    target: target?.[1] ?? null,
  }
}

async function storedNumber(store: Tables, id: number | undefined) {
  if (id === undefined) return undefined
  const query = store.db.selectFrom('phone_number').selectAll().where('id', '=', id)
  const row = await first(store, query)
  return (
    row && {
      number: row.number,
      first: row.first_number,
      last: row.last_number,
      customerId: row.customer_id,
      verifiedSince: row.verified_since_at,
    }
  )
}

export const rangeOfBody = ({
  number,
  last_number: last,
}: Pick<NumberBody, 'number' | 'last_number'>) => {
  const range = rangeOf(number)
  return last == null ? range : { ...range, last: numberKey(last) }
}

/** Numbers of phones and user names come from `customers.numbers`, and only stay as they are. */
const E164 = /^[1-9][0-9]{2,14}$/

/** A block is a part of the numbering plan, such as the million numbers of a place. */
const MAX_BLOCK_NUMBERS = 1_000_000

/** Returns why this is no number or block in E.164; undefined: it is one. */
export function rangeProblem({ first: from, last: to }: NumberRange): RequestProblem | undefined {
  if (!E164.test(from))
    return { path: 'number', message: 'must be a number in E.164, such as +4930100' }
  if (!E164.test(to) || to.length !== from.length)
    return { path: 'last_number', message: 'must have as many digits as number' }
  if (to < from) return { path: 'last_number', message: 'is before number' }
  if (Number(to) - Number(from) >= MAX_BLOCK_NUMBERS)
    return { path: 'last_number', message: `a block has at most ${MAX_BLOCK_NUMBERS} numbers` }
  return undefined
}

async function refuseRange(
  store: Tables,
  range: NumberRange,
  { tenantId }: RequestScope,
  id: number | undefined,
): Promise<void> {
  const problem = rangeProblem(range)
  if (problem !== undefined) throw badReference(problem.path, problem.message)
  // A tenant learns nothing about numbers of others.
  if (tenantId !== null && !(await ownsRange(store, tenantId, range)))
    throw badReference('number', 'is not a number of this tenant')
  if ((await overlapping(store, range, id)) !== undefined)
    throw new ApiError(409, 'duplicate', 'Another row has this number, or one of this block', {
      details: [{ path: 'number', message: 'is already taken' }],
    })
}

export async function refuseOtherOwner(
  store: Tables,
  customerId: number,
  tenantId: number | null,
): Promise<void> {
  const query = store.db.selectFrom('customer').select('tenant_id').where('id', '=', customerId)
  if ((await first(store, query))?.tenant_id !== tenantId)
    throw badReference('customer', 'belongs to another tenant than the number')
}

/** The last number of a block has a plus where the first one has. */
function lastOf({ number, first_number: from, last_number: to }: Row): string | null {
  if (from === to) return null
  return String(number).startsWith('+') ? `+${String(to)}` : String(to)
}
