/**
 * A platform with something of everything for the tools to see: two tenants, a call, records,
 * money.
 */
import type { Insertable } from 'kysely'
import { execute } from '../../schema/sql/query.ts'
import type { DispatcherPort, NodeStatus } from '../../schema/contracts/engine.ts'
import { openControl, type Answer, type ControlOptions, type TestControl } from './control.ts'
import { runSql } from './stored.ts'
import { activeCall, nodeStatus } from './engine-views.ts'
import type { CdrTable } from '../../schema/tables/calls.ts'
import type { StateChangeTable } from '../../schema/tables/changes.ts'

export interface ToolRig extends TestControl {
  /** One call over plain REST. */
  tool(name: string, given?: object, token?: string): Promise<Answer>
  /** The token of a global key that may do everything. */
  readonly root: string
}

export const liveCall = '11111111-1111-4111-8111-111111111111'
export const endedCall = '22222222-2222-4222-8222-222222222222'
export const deniedCall = '33333333-3333-4333-8333-333333333333'

/** Tenant `acme` owns set 1 with two nodes, a live call, two records, a customer and keys. */
export async function openToolRig(options?: ControlOptions): Promise<ToolRig> {
  const control = await openControl(options)
  const root = await control.key({ name: 'root' })
  const tenantId = await control.tenant('acme', ['acme.example'])
  await control.tenant('other', ['other.example'])
  const make = async (path: string, body: object) => {
    const answer = await control.request(`/api/v1${path}`, { token: root, body })
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
  }
  const tenant = { tenant: 'acme' }
  await make('/dispatcher', {
    ...tenant,
    endpoint_name: 'acme pbx',
    algorithm: 8,
    set_id: 1,
    nodes: [{ host: '10.0.0.1', description: 'first' }, { host: '10.0.0.2' }],
  })
  await make('/dispatcher', {
    endpoint_name: 'common pbx',
    algorithm: 8,
    set_id: 2,
    nodes: [{ host: '10.0.0.3' }],
  })
  await make('/rate-plans', { name: 'acme plan', ...tenant })
  await make('/rates', { rate_plan: 'acme plan', prefix: '49', rate_per_minute: '0.10' })
  await make('/customers', {
    name: 'acme customer',
    numbers: ['4930100'],
    rate_plan: 'acme plan',
    balance: '10',
    ...tenant,
    password: 'horse battery',
    email: 'a@acme.example',
  })
  controlNodes(control)
  liveCallOf(control, tenantId)
  await storeRecord(control, tenantId, endedCall, {})
  await storeRecord(control, tenantId, deniedCall, {
    disposition: 'FAILED',
    sip_code: 402,
    denial_code: 'insufficient_funds',
    billsec: 0,
    answer_stamp: null,
    attempts: '[]',
    cost_micros: 0,
    hangup_by: 'system',
  })
  await forgetChanges(control)
  return {
    ...control,
    root,
    tool: (name, given = {}, token = root) =>
      control.request(`/api/v1/mcp/tools/${name}`, { token, body: given }),
  }
}

/** Forgets the changes that were made before a test. */
export async function forgetChanges({ store }: Pick<TestControl, 'store'>): Promise<void> {
  await runSql(store, 'DELETE FROM change_entry')
  await runSql(store, "DELETE FROM setting WHERE name LIKE 'change_states%'")
}

/**
 * The engine's sets: set 1 as it is stored, and a set without an owner. What operators set is
 * stored, as the engine does.
 */
function controlNodes({ engine, store }: TestControl): void {
  const states = new Map<string, NodeStatus['state']>()
  const node = (nodeId: number, host: string): NodeStatus => {
    const destination = `sip:${host}:5060;transport=udp`
    return nodeStatus({
      nodeId,
      destination,
      latencyMs: 1.5,
      state: states.get(destination) ?? 'active',
      description: host,
      probes: { sent: 1, answered: 1, failed: 0 },
    })
  }
  const all = () => [
    { setId: 1, nodes: [node(1, '10.0.0.1'), node(2, '10.0.0.2')] },
    { setId: 2, nodes: [node(3, '10.0.0.3')] },
  ]
  const find: DispatcherPort['find'] = (setId, destination) => {
    const set = all().find((each) => each.setId === setId)
    const others = set?.nodes.filter((each) => each.destination !== destination) ?? []
    const found = set?.nodes.find((each) => each.destination === destination)
    const isLastInService = !others.some((each) => each.state === 'active')
    return found && { ...found, isLastInService }
  }
  const setState: DispatcherPort['setState'] = async (setId, destination, state) => {
    if (!all().some((each) => each.setId === setId)) return 'unknown_set'
    const found = find(setId, destination)
    if (found === undefined) return 'unknown_destination'
    if (state === 'inactive' && found.isLastInService) return 'last_active_node'
    states.set(destination, state)
    const stored = state === 'inactive' ? 'inactive' : 'active'
    const update = store.db.updateTable('dispatcher_node').set({ operator_state: stored })
    await execute(store, update.where('id', '=', found.nodeId))
    return 'changed'
  }
  const status = (setId?: number) =>
    all().filter((set) => setId === undefined || set.setId === setId)
  Object.assign(engine.dispatcher, { status, find, setState })
}

function liveCallOf({ engine, now }: TestControl, tenantId: number): void {
  engine.activeCalls = [
    activeCall({
      callUuid: liveCall,
      tenantId,
      customerId: 1,
      callerNumber: '4930100',
      calledNumber: '4940200',
      startedAt: now() - 5_000,
      answeredAt: now() - 3_000,
      setId: 1,
      node: '10.0.0.1:5060',
      peers: { caller: '192.0.2.1:5060', callee: '10.0.0.1:5060' },
    }),
  ]
}

type RecordColumns = Insertable<CdrTable>

/** One more call record, with these columns different. */
export async function storeRecord(
  { store, now }: TestControl,
  tenantId: number | null,
  call_uuid: string,
  columns: Partial<RecordColumns>,
): Promise<void> {
  const start_stamp = now() - 60_000
  const attempt = { destination: 'sip:10.0.0.1', status: 200, reason: 'OK' }
  const attempts = JSON.stringify([{ ...attempt, startedAt: start_stamp, endedAt: now() }])
  const row = {
    call_uuid,
    call_id: `${call_uuid}@acme`,
    direction: 'inbound' as const,
    caller_id_number: '4930100',
    caller_id_name: null,
    destination_number: '4940200',
    start_stamp,
    answer_stamp: start_stamp + 2_000,
    end_stamp: now(),
    attempts,
    post_dial_delay_ms: 100,
    duration: 60,
    billsec: 58,
    disposition: 'ANSWERED' as const,
    sip_code: 200,
    hangup_cause: 'NORMAL_CLEARING',
    hangup_by: 'caller' as const,
    denial_code: null,
    set_id: 1,
    node: '10.0.0.1',
    carrier: null,
    tenant_id: tenantId,
    customer_id: 1,
    rate_prefix: '49',
    cost_micros: 100_000,
    currency: 'USD',
    mos_score: null,
    jitter_ms: null,
    packet_loss_pct: null,
    source_address: '10.1.1.1',
  }
  await execute(store, store.db.insertInto('cdr').values({ ...row, ...columns }))
}

/** That a node, or with these columns another one, was found out of service. */
export const noteChange = (
  { store }: Pick<TestControl, 'store'>,
  columns: Partial<Insertable<StateChangeTable>> & { readonly at: number },
) =>
  execute(
    store,
    store.db.insertInto('state_change').values({
      kind: 'node',
      subject_id: 1,
      tenant_id: 1,
      name: 'sip:10.0.0.1:5060;transport=udp',
      observer: 'a',
      from_state: 'active',
      to_state: 'probing',
      actor: null,
      cause: 'probe',
      reason: 'no answer',
      ...columns,
    }),
  )

/** A phone of the extension with this id, registered from this address for an hour. */
export async function addBinding(
  { store, now }: TestControl,
  extension_id: number,
  address: string,
): Promise<void> {
  const row = {
    extension_id,
    contact: `sip:${extension_id}@${address}`,
    q: 1_000,
    call_id: `${extension_id}-${address}`,
    cseq: 1,
    path: '[]',
    user_agent: 'Desk 1',
    source_protocol: 'udp',
    source_address: address,
    source_port: 5060,
    node: 'sbc-1',
    registered_at: now(),
    expires_at: now() + 3_600_000,
  }
  await execute(store, store.db.insertInto('binding').values(row))
}
