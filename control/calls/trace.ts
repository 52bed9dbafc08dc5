/**
 * `GET /calls/{uuid}/trace`: the SIP messages of a call, and the decisions between them; with
 * `.pcap`, the messages as a packet capture.
 */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import { storedDenialText } from '../../schema/contracts/denials.ts'
import type { EnginePort } from '../../schema/contracts/engine.ts'
import type { Trace, TraceEntry } from '../../schema/contracts/calls.ts'
import type { Store } from '../../schema/storage/store.ts'
import { first } from '../../schema/sql/query.ts'
import type { Principal } from '../auth/principal.ts'
import { requires } from '../auth/requires.ts'
import { pcapOf } from './pcap.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import type { Platform } from '../http/platform.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { answerOfPeer } from '../instances/peer-answers.ts'
import type { WithOthers } from '../instances/other-instances.ts'
import { count, exampleTime, moment } from '../http/view-fields.ts'
import { data, text } from '../http/operation.ts'
import { exampleCallUuid } from './active-call-view.ts'

const message = z
  .strictObject({
    at: moment,
    kind: z.literal('message'),
    direction: z.enum(['received', 'sent']),
    leg: count.describe('Index into `legs`.'),
    transport: z.string(),
    address: z
      .string()
      .describe('The remote address; of a message that was sent by UDP, the local one.'),
    summary: z.string(),
    text: z.string().describe('The message, with credentials and media keys removed.'),
  })
  .meta({ id: 'TraceMessage' })

const decision = z
  .strictObject({
    at: moment,
    kind: z.literal('decision'),
    what: z.string(),
    detail: z.looseObject({}),
  })
  .meta({ id: 'TraceDecision' })

const peer = z
  .strictObject({
    role: z
      .enum(['caller', 'called'])
      .nullable()
      .describe(
        'Whether it sent or received the INVITE. Null when no INVITE of the leg is stored.',
      ),
    name: z
      .string()
      .nullable()
      .describe('A carrier, an extension or an agent; else as the INVITE names the peer.'),
    address: z.string().nullable().describe('Remote address of its first message.'),
  })
  .meta({ id: 'LegPeer' })

const traceSchema = z
  .strictObject({
    call_uuid: z.string(),
    legs: z
      .array(z.string())
      .describe('Call-IDs of the legs; the first belongs to the caller leg.'),
    peers: z.array(peer).describe('Who is at the far end of each leg.'),
    is_complete: z.boolean().describe('False when the first messages are no longer stored.'),
    entries: z.array(z.discriminatedUnion('kind', [message, decision])),
  })
  .meta({ id: 'CallTrace' })

const path = z.strictObject({ uuid: z.guid() })

/** The end of a call that no process remembers. Undefined: it was not refused or cut off. */
async function endOfRecord(
  store: Store,
  uuid: string,
  { tenantId }: Principal,
): Promise<Trace | undefined> {
  const row = await first(
    store,
    store.db.selectFrom('cdr').selectAll().where('call_uuid', '=', uuid),
  )
  if (row === undefined || row.denial_code === null) return undefined
  if (tenantId !== null && row.tenant_id !== tenantId) return undefined
  const payer = store.db.selectFrom('customer').select('tenant_id')
  const paidBy =
    row.customer_id === null
      ? undefined
      : await first(store, payer.where('id', '=', row.customer_id))
  const { disposition, billsec, denial_code: denialCode } = row
  const detail = {
    disposition,
    sipCode: row.sip_code,
    hangupBy: row.hangup_by,
    hangupCause: row.hangup_cause,
    denialCode,
    billsec,
    denialText: storedDenialText(denialCode, row.denial_text),
  }
  return {
    tenantId: row.tenant_id,
    isPaidByPlatform: paidBy !== undefined && paidBy.tenant_id !== row.tenant_id,
    legs: [],
    peers: [],
    isComplete: false,
    entries: [{ kind: 'decision', at: row.end_stamp, what: 'ended', detail }],
  }
}

type TraceRoutesDeps = TraceDeps & WithOthers

export function traceRoutes(deps: TraceRoutesDeps) {
  return new Hono<ControlEnv>().route('/', traceCallRoute(deps)).route('/', captureCallRoute(deps))
}

const traceCallRoute = (deps: TraceRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/calls/:uuid/trace',
    describeRoute({
      id: 'traceCall',
      tag: 'Calls',
      instances: 'call',
      summary:
        'Get the SIP trace of a call: the messages of all legs, and the decisions between ' +
        'them. Without `calls:control` the tags of its dialogs are hidden.',
      answer: data(traceSchema, {
        call_uuid: exampleCallUuid,
        legs: ['a84b4c76e66710'],
        is_complete: true,
        peers: [{ role: 'caller', name: '4930100', address: '203.0.113.7:5060' }],
        entries: [
          {
            at: exampleTime,
            kind: 'decision',
            what: 'charged',
            detail: {
              verdict: 'granted',
              granted_seconds: 60,
              customer_id: 7,
              customer: 'acme',
              balance: '10.00',
              available: '9.40',
              currency: 'USD',
            },
          },
        ],
      }),
    }),
    requires('calls:read'),
    validate('param', path),
    async (c) => {
      const { uuid } = c.req.valid('param')
      const show = async (trace: Trace) =>
        ok(c, await traceView(uuid, trace, c.var.principal, deps))
      return answered(c, deps, show, endOfRecord)
    },
  )

const captureCallRoute = (deps: TraceRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/calls/:uuid/trace.pcap',
    describeRoute({
      id: 'captureCall',
      tag: 'Calls',
      instances: 'call',
      summary:
        'Get the SIP messages of a call as a packet capture (libpcap). Each message is one ' +
        'UDP datagram, whatever transport carried it. Without `calls:control` the tags of its ' +
        'dialogs are hidden.',
      answer: text('application/vnd.tcpdump.pcap', '\u00a1\u00b2\u00c3\u00d4…'),
    }),
    requires('calls:read'),
    validate('param', path),
    async (c) => {
      const { uuid } = c.req.valid('param')
      const show = (trace: Trace) =>
        c.body(pcapOf(trace), 200, {
          'Content-Type': 'application/vnd.tcpdump.pcap',
          'Content-Disposition': `attachment; filename="${uuid}.pcap"`,
        })
      return answered(c, deps, show, undefined)
    },
  )

/**
 * Answers with the trace of this instance, with the response of the instance that has it, or with
 * the end that `ifForgotten` reads from the call record.
 */
async function answered(
  c: Context<ControlEnv>,
  deps: TraceRoutesDeps,
  answer: (trace: Trace) => Response | Promise<Response>,
  ifForgotten: typeof endOfRecord | undefined,
): Promise<Response> {
  const uuid = c.req.param('uuid') ?? ''
  const trace = await findTrace(deps.engine, uuid, c.var.principal)
  if (trace !== undefined) return answer(trace)
  const answerElsewhere = await answerOfPeer(c, deps.others)
  if (answerElsewhere !== undefined) return answerElsewhere
  // An asking instance gets only the memory of this instance: another may have more.
  const isInstance = c.get('instanceRequest') !== undefined
  const ended = isInstance ? undefined : await ifForgotten?.(deps.store, uuid, c.var.principal)
  if (ended === undefined) throw notFound('call')
  return answer(ended)
}

export type TraceDeps = Pick<Platform, 'store' | 'ocs'> & {
  readonly engine: Pick<EnginePort, 'trace'>
}

/**
 * The trace as a principal may see it. Undefined: it is not stored any more, or of another tenant.
 */
export async function findTrace(
  engine: TraceDeps['engine'],
  uuid: string,
  { tenantId, scopes }: Principal,
): Promise<Trace | undefined> {
  const trace = await engine.trace(uuid)
  if (trace === undefined || (tenantId !== null && trace.tenantId !== tenantId)) return undefined
  return scopes.has('calls:control') ? trace : withoutTags(trace)
}

/**
 * Hides the tags of dialogs, with which anybody can send requests in them. Equal tags get equal
 * numbers.
 */
function withoutTags(trace: Trace): Trace {
  const shown = new Map<string, string>()
  const hide = (_match: string, name: string, tag: string): string => {
    const alias = shown.get(tag) ?? `hidden-${shown.size + 1}`
    shown.set(tag, alias)
    return name + alias
  }
  const entries = trace.entries.map((entry) =>
    entry.kind === 'message' ? { ...entry, text: entry.text.replace(tags, hide) } : entry,
  )
  return { ...trace, entries }
}

/**
 * Also those in Replaces, Join and Target-Dialog, escaped as in a Refer-To, and in the dialog-info
 * of a body.
 */
const tags = /((?:;|%3B|[ \t])[ \t]*(?:[a-z]+-)?tag[ \t]*(?:=|%3D)[ \t]*["']?)([^;,>\s"'%&?]+)/gi

export async function traceView(uuid: string, trace: Trace, principal: Principal, deps: TraceDeps) {
  const { legs, peers, entries, isComplete } = trace
  const isHidden = principal.tenantId !== null && trace.isPaidByPlatform === true
  const detailOf = ({ what, detail }: Decision) => {
    if (what === 'hook') return failureFor(principal, detail)
    return isHidden ? withoutPrice(detail) : detail
  }
  const shown: (ReturnType<typeof messageView> | ReturnType<typeof decisionView>)[] = []
  for (const entry of entries)
    shown.push(
      entry.kind === 'message'
        ? messageView(entry, legs)
        : decisionView(entry, await detailFor(detailOf(entry), principal, deps)),
    )
  return { call_uuid: uuid, legs, peers, is_complete: isComplete, entries: shown }
}

export type TraceView = Awaited<ReturnType<typeof traceView>>

type Message = Extract<TraceEntry, { kind: 'message' }>
type Decision = Extract<TraceEntry, { kind: 'decision' }>
type Detail = Decision['detail']

function messageView(message: Message, legs: readonly string[]) {
  const { kind, direction, leg, transport, address, text } = message
  const at = timeToText(message.at)
  const end = text.indexOf('\r\n')
  const summary = end === -1 ? text : text.slice(0, end)
  return { at, kind, direction, leg: legs.indexOf(leg), transport, address, summary, text }
}

const decisionView = ({ at, kind, what }: Decision, detail: Detail) => ({
  at: timeToText(at),
  kind,
  what,
  detail: Object.fromEntries(
    Object.entries(detail).map(([name, value]) => [inSnakeCase(name), value]),
  ),
})

/** Why the platform's own code has failed may name its paths and addresses: no tenant reads it. */
function failureFor({ tenantId }: Principal, detail: Detail): Detail {
  const isTold = tenantId === null || detail['tenantId'] === tenantId
  return isTold || detail['failed'] === null ? detail : { ...detail, failed: 'it has failed' }
}

/** Hides what a decision says of the money of a customer of the platform. */
function withoutPrice(detail: Detail): Detail {
  const { ratePrefix: _p, grantedSeconds: _g, currency: _c, balance: _b, ...rest } = detail
  const { available: _a, denialText: text, ...others } = rest
  const code = rest['denialCode'] ?? rest['code']
  const generic = typeof code === 'string' ? storedDenialText(code, null) : null
  return text == null ? others : { ...others, denialText: generic }
}

const inSnakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/**
 * Carrier prices are hidden from tenants; name and money of a customer from users that may not see
 * it.
 */
async function detailFor(detail: Detail, principal: Principal, deps: TraceDeps): Promise<Detail> {
  const { prices, balance, available, ...others } = detail
  const customer = await customerOf(detail['customerId'], principal, deps)
  return {
    ...others,
    ...(prices !== undefined && principal.tenantId === null && { prices }),
    ...(customer !== undefined && { customer }),
    ...(customer !== undefined && balance !== undefined && { balance, available }),
  }
}

/** The name; undefined: none, not to be seen, or in another OCS. */
async function customerOf(
  customerId: unknown,
  { tenantId, scopes }: Principal,
  { store, ocs }: Pick<TraceDeps, 'store' | 'ocs'>,
): Promise<string | undefined> {
  if (typeof customerId !== 'number' || ocs === undefined) return undefined
  if (!scopes.has('customers:read')) return undefined
  let query = store.db.selectFrom('customer').select('name').where('id', '=', customerId)
  if (tenantId !== null) query = query.where('tenant_id', '=', tenantId)
  return (await first(store, query))?.name
}
