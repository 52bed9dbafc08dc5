/** Two processes: one bridges calls, the other charges them (`OCS_URL`), and goes away under load. */
import { expect, onTestFinished, test } from 'vitest'
import { callWith, SippNode } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { paying, seedFor } from './call-case.ts'
import { eventually, patientNodes } from '../support/waiting.ts'

const clean = { exitCode: 0, errors: '' }

/** An OCS with the customers, and an SBC that asks it. */
async function startBoth() {
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => {
    await node.stop()
  })
  const ocs = await TollgateProcess.start(seedFor([node.port]))
  onTestFinished(() => ocs.stop())
  const token = await ocs.createKey('--name', 'node', '--scopes', 'ocs')
  const sbc = await TollgateProcess.start(seedFor([node.port]), {
    ...patientNodes,
    OCS_URL: `http://127.0.0.1:${ocs.apiPort}`,
    OCS_TOKEN: token,
    OCS_FAIL_MODE: 'open',
    OCS_TIMEOUT_MS: '500',
  })
  onTestFinished(() => sbc.stop())
  const place = (calls: number) =>
    callWith('inbound/answered.xml', sbc.sipPort, { keys: { caller: paying }, calls, rate: 20 })
  return { ocs, sbc, place }
}

test('the OCS is away under load: calls go on, and each is charged once when it is back', async () => {
  const { ocs, sbc, place } = await startBoth()
  expect(await place(10)).toEqual(clean)
  await ocs.kill()
  expect(await place(60)).toEqual(clean)
  await sbc.kill()
  await sbc.restart()
  await ocs.restart()

  const charged = await ocs.waitForCalls(70, 45_000)
  await eventually(() => expect(sbc.query('SELECT call_uuid FROM cdr_outbox')).toEqual([]))
  const bridged = sbc.calls()
  const costs = (calls: typeof charged) =>
    new Map(calls.map((call) => [call.call_uuid, call.cost_micros]))
  expect(bridged.length).toBe(70)
  expect(costs(bridged)).toEqual(costs(charged))
  expect(
    sbc.query('SELECT call_uuid FROM cdr WHERE is_unauthorized_by_ocs = 1').length,
  ).toBeGreaterThanOrEqual(60)
  const cost = charged.reduce((sum, call) => sum + call.cost_micros, 0)
  expect(ocs.wallet('paying')).toMatchObject({
    balance: 10_000_000 - cost,
    ledger: 10_000_000 - cost,
    debits: charged.filter((call) => call.cost_micros > 0).length,
  })
  await ocs.run(['check'])
})
