/** Two Tollgates: one serves calls, the other has the money and is its OCS over HTTP. */
import { expect, onTestFinished, test } from 'vitest'
import {
  cents,
  expectPaid,
  openCalls,
  openHangUp,
  paying,
  poor,
  seedFor,
} from '../sipp/call-case.ts'
import { callWith, SippNode } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientInstances } from '../support/waiting.ts'

const clean = { exitCode: 0, errors: '' }
const caller = { keys: { caller: paying } }

interface Pair {
  readonly edge: TollgateProcess
  readonly billing: TollgateProcess
}

async function startPair(): Promise<Pair> {
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const { dispatcher, ...accounts } = seedFor([node.port])
  const billing = await TollgateProcess.start(accounts)
  onTestFinished(() => billing.stop())
  const token = await billing.createKey(
    '--name',
    'edge',
    '--kind',
    'billing',
    '--scopes',
    'ocs:write',
  )
  const edge = await TollgateProcess.start(
    { dispatcher },
    {
      ...patientInstances,
      OCS_URL: `http://127.0.0.1:${billing.apiPort}`,
      OCS_TOKEN: token,
      OCS_FAIL_MODE: 'closed',
      // One that is away refuses the connection; one that stands still for a moment is waited for.
      OCS_TIMEOUT_MS: '20000',
    },
  )
  onTestFinished(() => edge.stop())
  return { edge, billing }
}

const outbox = (edge: TollgateProcess): unknown[] => edge.query('SELECT call_uuid FROM cdr_outbox')

/** The money is right, and each of `count` calls is known and charged once on the billing side. */
function expectCharged({ edge, billing }: Pair, count: number): void {
  const stored = billing.calls()
  const answered = edge.calls().filter((call) => call.disposition === 'ANSWERED')
  const uuids = (calls: readonly { readonly call_uuid: string }[]) =>
    calls.map((call) => call.call_uuid).toSorted()
  expect(answered).toHaveLength(count)
  expect(uuids(stored.filter((call) => call.disposition === 'ANSWERED'))).toEqual(uuids(answered))
  const cost = stored.reduce((sum, call) => sum + call.cost_micros, 0)
  expect(cost).toBe(answered.reduce((sum, call) => sum + cents(call.billsec), 0))
  const left = cents(1_000) - cost
  expect(billing.wallet('paying')).toEqual({ balance: left, ledger: left, debits: count })
}

test('the OCS authorizes and charges over HTTP; while it is away new calls get 503, and CDRs wait, also through a crash, and arrive once', async () => {
  const pair = await startPair()
  const { edge, billing } = pair
  expect(await callWith('inbound/answered.xml', edge.sipPort, caller)).toEqual(clean)
  const refused = await callWith('inbound/no-funds.xml', edge.sipPort, { keys: { caller: poor } })
  expect(refused).toEqual(clean)
  // The outbox is empty before they are stored, too.
  await edge.waitForCalls(2)
  await expect.poll(() => outbox(edge)).toEqual([])
  // The calls with the costs that the OCS has told.
  const [first, second] = edge.calls()
  expectPaid(first, 1)
  expect(second).toMatchObject({
    disposition: 'FAILED',
    sip_code: 402,
    denial_code: 'insufficient_funds',
  })
  expectCharged(pair, 1)

  const calls = 10
  const hangUp = await openHangUp(edge)
  const talking = callWith('inbound/caller-is-hung-up.xml', edge.sipPort, {
    ...caller,
    calls,
    rate: 100,
  })
  await expect.poll(() => openCalls(edge)).toHaveLength(calls)
  await billing.kill()
  await hangUp(openCalls(edge))
  expect(await talking).toEqual(clean)
  expect(await callWith('failover/retry-later.xml', edge.sipPort, caller)).toEqual(clean)
  const stored = await edge.waitForCalls(calls + 3)
  expect(stored.at(-1)).toMatchObject({
    disposition: 'CONGESTION',
    sip_code: 503,
    denial_code: 'ocs_unreachable',
  })

  await edge.kill()
  await edge.restart()
  await billing.restart()
  await expect.poll(() => outbox(edge)).toEqual([])
  expectCharged(pair, calls + 1)
})
