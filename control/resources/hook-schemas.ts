/**
 * Questions to a routing webhook and its answers as schemas, for the OpenAPI document: the types of
 * `schema/contracts/hooks.ts`. The engine checks answers more closely.
 */
import { z } from 'zod'
import { attestations, verifications } from '../../schema/contracts/field-values.ts'
import type { HookCall, InviteDecision } from '../../schema/contracts/hooks.ts'

const idOrName = z.union([z.int().min(1), z.string().min(1).max(100)])

const texts = (most: number, length: number) =>
  z.record(z.string(), z.string().max(length)).describe(`At most ${most}.`)

const party = z.strictObject({ id: z.int(), name: z.string() })

export const inviteDecision = z
  .strictObject({
    refuse: z
      .strictObject({
        status: z.int().min(400).max(699).describe('Not 401 or 407.'),
        reason: z
          .string()
          .max(100)
          .exactOptional()
          .describe('Absent: the usual phrase of the status.'),
      })
      .exactOptional(),
    to: z.string().exactOptional().describe('Number that is called instead.'),
    from: z.string().exactOptional().describe('Number that is shown instead. The payer stays.'),
    fromName: z.string().max(100).exactOptional().describe('Name that is shown; empty: none.'),
    set: idOrName.exactOptional().describe('Dispatcher set, by number or name.'),
    carriers: z.array(idOrName).min(1).max(16).exactOptional().describe('Carriers in order.'),
    extension: z.string().exactOptional().describe('`101` or `101@domain`.'),
    agent: idOrName.exactOptional().describe('AI agent, by id or name.'),
    uri: z.string().max(512).exactOptional().describe('SIP URI outside.'),
    headers: texts(16, 256).exactOptional(),
    tags: texts(16, 128).exactOptional(),
    record: z
      .boolean()
      .exactOptional()
      .describe('Whether the call is recorded, whatever rules say.'),
  })
  .describe(
    'Every field may be absent. At most one of `set`, `carriers`, `extension`, `agent` and `uri`.',
  )
  .meta({ id: 'InviteDecision' }) satisfies z.ZodType<InviteDecision>

const hookCall = z
  .strictObject({
    callUuid: z.string(),
    callId: z.string(),
    isSimulated: z.literal(true).exactOptional().describe('The simulator asks: no call follows.'),
    from: z.string().describe('Number of the caller, in normal form.'),
    fromName: z.string().nullable(),
    to: z.string().describe('Number or name that is called, in normal form.'),
    domain: z.string(),
    source: z
      .strictObject({
        kind: z.enum([
          'carrier',
          'node',
          'extension',
          'proxy',
          'trusted',
          'api',
          'forward',
          'application',
        ]),
        address: z.string(),
        port: z.int().min(0),
        id: z.int().nullable(),
        name: z.string().nullable(),
        tenantId: z.int().nullable(),
      })
      .meta({ id: 'HookSource' }),
    customer: party.exactOptional(),
    carrier: party.exactOptional(),
    tenantId: z.int().nullable(),
    verification: z
      .enum(verifications)
      .exactOptional()
      .describe('What the Identity headers have proved. Absent: the carrier is not verified.'),
    attestation: z
      .enum(attestations)
      .exactOptional()
      .describe('How far the network of the caller vouches for its number, as is proved.'),
    headers: z.record(z.string(), z.string()),
  })
  .meta({ id: 'HookCall' }) satisfies z.ZodType<HookCall>

export const callQuestion = hookCall
  .extend({ type: z.literal('call.invite') })
  .meta({ id: 'CallQuestion' })

export const exampleCallQuestion = {
  type: 'call.invite',
  callUuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
  callId: 'a84b4c76e66710@198.51.100.7',
  from: '4930100',
  fromName: null,
  to: '4940200',
  domain: 'acme.example',
  source: {
    kind: 'carrier',
    address: '198.51.100.7',
    port: 5060,
    id: 1,
    name: 'transit',
    tenantId: null,
  },
  customer: { id: 1, name: 'acme' },
  carrier: { id: 1, name: 'transit' },
  tenantId: null,
  headers: { 'user-agent': 'example' },
}
