/** Filters of a report apart from its period: numbers, payer, carrier, node, cause or Call-ID. */
import { type Expression, type ExpressionBuilder, type RawBuilder, sql, type SqlBool } from 'kysely'
import { z } from 'zod'
import { attestations, verifications } from '../../schema/contracts/field-values.ts'
import type { Database } from '../../schema/tables/database.ts'
import { numberOrText } from '../../schema/rules/numbers.ts'
import { likePattern, queryId } from '../http/envelope.ts'
import { text } from '../http/fields.ts'

const wanted = text(255).min(1)

/** Spread into a query schema. All given filters must match. */
export const matchQuery = {
  number: wanted
    .optional()
    .describe('The number of the caller or the called number, with or without `+`.'),
  caller: wanted.optional().describe("The caller's number, with or without `+`."),
  called: wanted.optional().describe('The called number, with or without `+`.'),
  customer_id: queryId.optional().describe('The paying customer.'),
  carrier: wanted.optional().describe("A carrier's name."),
  node: wanted
    .optional()
    .describe('A node: its host, `host:port`, or its SIP URI as records show it.'),
  cause: wanted.optional().describe('A `hangup_cause` or a `denial_code`, in any case.'),
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
}

export type CdrMatch = z.output<z.ZodObject<typeof matchQuery>>

/** Undefined when no filter is given. */
export function matchOf(query: CdrMatch): CdrMatch | undefined {
  const { number, caller, called, customer_id, carrier, node, cause } = query
  const { call_id, call_uuid, tag, verification, attestation } = query
  const match = {
    number,
    caller,
    called,
    customer_id,
    carrier,
    node,
    cause,
    call_id,
    call_uuid,
    tag,
    verification,
    attestation,
  }
  return Object.values(match).some((value) => value !== undefined) ? match : undefined
}

export function matches(
  eb: ExpressionBuilder<Database, 'cdr'>,
  match: CdrMatch,
): Expression<SqlBool> {
  const { number, caller, called, customer_id, carrier, node, cause } = match
  const { call_id, call_uuid, tag, verification, attestation } = match
  const conditions: Expression<SqlBool>[] = []
  if (number !== undefined) {
    const texts = spellings(number)
    conditions.push(
      eb.or([eb('caller_id_number', 'in', texts), eb('destination_number', 'in', texts)]),
    )
  }
  if (caller !== undefined) conditions.push(eb('caller_id_number', 'in', spellings(caller)))
  if (called !== undefined) conditions.push(eb('destination_number', 'in', spellings(called)))
  if (customer_id !== undefined) conditions.push(eb('customer_id', '=', customer_id))
  if (carrier !== undefined) conditions.push(eb('carrier', '=', carrier))
  if (node !== undefined) conditions.push(onNode(sql.ref<string>('node'), node))
  if (cause !== undefined)
    conditions.push(
      eb.or([
        eb('hangup_cause', '=', cause.toUpperCase()),
        eb('denial_code', '=', cause.toLowerCase()),
      ]),
    )
  if (call_id !== undefined) conditions.push(eb('call_id', '=', call_id))
  if (tag !== undefined) conditions.push(withTag(sql.ref<string>('tags'), tag))
  if (verification !== undefined) conditions.push(eb('verification', '=', verification))
  if (attestation !== undefined) conditions.push(eb('attestation', '=', attestation))
  if (call_uuid !== undefined)
    conditions.push(eb('call_uuid', 'in', [call_uuid, call_uuid.toLowerCase()]))
  return eb.and(conditions)
}

/** Tags are a JSON object without spaces: within a value its quotes would be escaped. */
function withTag(column: RawBuilder<string>, tag: string): RawBuilder<SqlBool> {
  const colon = tag.indexOf(':')
  const pair = [tag.slice(0, colon), tag.slice(colon + 1)].map((each) => JSON.stringify(each))
  const pattern = likePattern(pair.join(':').toLowerCase())
  return sql<SqlBool>`lower(${column}) LIKE ${pattern} ESCAPE '\\'`
}

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
