/**
 * Calls that Tollgate itself makes (`POST /telephony/test-call`), to a PBX node of `tollgate
 * test-pbx`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TraceView } from '../../control/calls/trace.ts'
import { freePort } from '../support/free-port.ts'
import { programEnvironment } from '../support/program-environment.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientInstances } from '../support/waiting.ts'

const number = '12025550100'
const called = '18005551212'
const [pbxPort, gatewayPort] = [await freePort(), await freePort()]

const seed = {
  tenants: [{ slug: 'acme', domains: ['acme.example'] }],
  rate_plans: [{ name: 'retail', currency: 'USD' }],
  rates: [{ rate_plan: 'retail', prefix: '1', rate_per_minute: '0.60' }],
  customers: [
    { name: 'paying', rate_plan: 'retail', numbers: [number], balance: '10.00' },
    { name: 'ours', tenant: 'acme', rate_plan: 'retail', balance: '10.00' },
    { name: 'broke', rate_plan: 'retail', numbers: ['12025550133'] },
  ],
  extensions: [
    {
      extension: '101',
      tenant: 'acme',
      domain: 'acme.example',
      display_name: 'Phone',
      password: 'a long password',
      customer: 'ours',
    },
  ],
  dispatcher: [
    {
      endpoint_name: 'pbx',
      set_id: 1,
      algorithm: 8,
      nodes: [{ host: '127.0.0.1', internal_port: pbxPort }],
    },
  ],
  carriers: [
    { name: 'world', direction: 'out', gateways: [{ host: '127.0.0.1', port: gatewayPort }] },
  ],
  outbound_routes: [
    { name: 'all', prefix: '1', carrier: 'world' },
    { name: 'help', prefix: '112', carrier: 'world', emergency: true },
  ],
}

/** `tollgate test-pbx` as node and gateway. */
const programs: Awaited<ReturnType<typeof startPbx>>[] = []
let tollgate: TollgateProcess
let token: string

async function startPbx(port: number) {
  const child = spawn(process.execPath, ['dist/main.js', 'test-pbx', '--port', String(port)], {
    env: programEnvironment,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = (await once(child.stdout, 'data')) as [Buffer]
  expect(said.toString()).toMatch(/^test-pbx: answers calls at 127\.0\.0\.1:\d+/)
  child.stdout.resume()
  return child
}

beforeAll(async () => {
  for (const port of [pbxPort, gatewayPort]) programs.push(await startPbx(port))
  tollgate = await TollgateProcess.start(seed, { ...patientInstances, DRAIN_SECONDS: '0' })
  token = await tollgate.createKey('--name', 'test', '--scopes', 'calls:originate,calls:read')
}, 120_000)
afterAll(async () => {
  // Also after a start that has failed.
  await (tollgate as TollgateProcess | undefined)?.stop()
  for (const child of programs) {
    const ended = once(child, 'exit')
    child.kill('SIGINT')
    expect(await ended).toEqual([0, null])
  }
})

async function place(body: object) {
  const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/telephony/test-call`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  const answer = (await response.json()) as { data?: { call_uuid: string }; code?: string }
  return { status: response.status, code: answer.code, uuid: answer.data?.call_uuid ?? '' }
}

const recordOf = (uuid: string) =>
  eventually(() => {
    const record = tollgate.calls().find(({ call_uuid: of }) => of === uuid)
    if (record === undefined) throw new Error('there is no record yet')
    return record
  })

async function traceOf(uuid: string) {
  const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/calls/${uuid}/trace`, {
    headers: { Authorization: `Bearer ${token}` },
  })
  return ((await response.json()) as { data: TraceView }).data
}

test('a call in the name of a number goes to its PBX node, ends by itself, and is debited once', async () => {
  const { status, code, uuid } = await place({ from: number, to: called, max_seconds: 1 })
  expect([status, code]).toEqual([201, undefined])
  const record = await recordOf(uuid)
  expect(record).toMatchObject({
    disposition: 'ANSWERED',
    billsec: 1,
    cost_micros: 10_000,
    denial_code: 'time_limit',
    node: `sip:127.0.0.1:${pbxPort};transport=udp`,
  })
  const debits = tollgate.query<{ amount: number }>(
    'SELECT amount_micros AS amount FROM ledger_entry WHERE ref = ?',
    uuid,
  )
  expect(debits.map(({ amount }) => amount)).toEqual([-10_000])
  // The phone of the test, and the node: each message is of one of them.
  const { is_complete: isComplete, peers, entries } = await traceOf(uuid)
  expect([isComplete, peers.length, peers[1]?.address]).toEqual([true, 2, `127.0.0.1:${pbxPort}`])
  const sent = entries.flatMap((entry) =>
    entry.kind === 'message' && /^INVITE|^SIP.* 200 /.test(entry.summary)
      ? [`${entry.leg} ${entry.direction} ${entry.summary.split(' ', 1)[0]}`]
      : [],
  )
  expect(sent.slice(0, 4)).toEqual([
    '0 sent INVITE',
    '0 received SIP/2.0',
    '1 sent INVITE',
    '1 received SIP/2.0',
  ])
})

test('a call in the name of an extension takes the outbound route, and its customer pays', async () => {
  const { status, code, uuid } = await place({ from: '101', to: called, max_seconds: 1 })
  expect([status, code]).toEqual([201, undefined])
  const record = await recordOf(uuid)
  expect(record).toMatchObject({ disposition: 'ANSWERED', direction: 'outbound', carrier: 'world' })
  expect(record.cost_micros).toBe(10_000)
})

test('a busy number is a record; a payer without money is refused before anything is sent', async () => {
  const { uuid } = await place({ from: number, to: '18005551219' })
  expect(await recordOf(uuid)).toMatchObject({ disposition: 'BUSY', sip_code: 486, cost_micros: 0 })
  const broke = await place({ from: '12025550133', to: called })
  expect([broke.status, broke.code]).toEqual([402, 'insufficient_funds'])
})

test.each([number, '101'])('no test call from %s dials an emergency number', async (from) => {
  const before = tollgate.calls().length
  const answer = await place({ from, to: '112', max_seconds: 1 })
  expect([answer.status, answer.code]).toEqual([409, 'emergency_number'])
  expect(tollgate.calls()).toHaveLength(before)
})
