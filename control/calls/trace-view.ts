/** The trace of a call as the API shows it to one principal. */
import { timeToText } from '../../schema/columns.ts'
import type { EnginePort } from '../../schema/contracts/engine-port.ts'
import type { Trace, TraceEntry } from '../../schema/contracts/trace.ts'
import type { Store } from '../../schema/open.ts'
import { first } from '../../schema/sql/query.ts'
import type { Principal } from '../auth/principal.ts'
import type { Platform } from '../http/platform.ts'

export type TraceDeps = Pick<Platform, 'store' | 'ocs'> & {
  readonly engine: Pick<EnginePort, 'trace'>
}

/** As a principal may see it. Undefined: it is not kept any more, or the call is another tenant's. */
export async function findTrace(
  engine: TraceDeps['engine'],
  uuid: string,
  { tenantId, scopes }: Principal,
): Promise<Trace | undefined> {
  const trace = await engine.trace(uuid)
  if (trace === undefined || (tenantId !== null && trace.tenantId !== tenantId)) return undefined
  return scopes.has('calls:control') ? trace : withoutTags(trace)
}

/** Who knows the tags of a dialog can write requests in it. Equal tags get equal numbers, so that legs are told apart. */
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

/** Also those in Replaces, Join and Target-Dialog, escaped as in a Refer-To, and in the dialog-info of a body. */
const tags = /((?:;|%3B|[ \t])[ \t]*(?:[a-z]+-)?tag[ \t]*(?:=|%3D)[ \t]*["']?)([^;,>\s"'%&?]+)/gi

export async function traceView(uuid: string, trace: Trace, principal: Principal, deps: TraceDeps) {
  const { legs, peers, entries, isComplete } = trace
  const shown: (ReturnType<typeof messageView> | ReturnType<typeof decisionView>)[] = []
  for (const entry of entries)
    shown.push(
      entry.kind === 'message'
        ? messageView(entry, legs)
        : decisionView(entry, await detailFor(entry.detail, principal, deps)),
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

const inSnakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Carrier prices are hidden from tenants; name and money of a customer from users that may not see it. */
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
  return nameOf(store, customerId, tenantId)
}

async function nameOf(
  store: Store,
  id: number,
  tenantId: number | null,
): Promise<string | undefined> {
  const query = store.db.selectFrom('customer').select('name').where('id', '=', id)
  const visible = tenantId === null ? query : query.where('tenant_id', '=', tenantId)
  return (await first(store, visible))?.name
}
