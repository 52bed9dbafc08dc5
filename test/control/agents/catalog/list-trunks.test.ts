import { expect, test } from 'vitest'
import type {
  CarrierRegistrationStatus,
  ProbedStatus,
} from '../../../../schema/contracts/engine.ts'
import { execute } from '../../../../schema/sql/query.ts'
import { openToolRig } from '../../../support/tools-rig.ts'

const probed = (state: ProbedStatus['state'], answered: number): ProbedStatus => ({
  state,
  latencyMs: 3,
  lastProbe: { at: 0, status: 0, reason: 'no answer' },
  probes: { sent: 9, answered, failed: 9 - answered },
})

const failed: CarrierRegistrationStatus = {
  state: 'failed',
  registrar: 'sip:192.0.2.50',
  expiresAt: null,
  nextAttemptAt: null,
  lastAnswer: { at: 0, status: 403, reason: 'Forbidden' },
}

/** Gateways 1 and 2 of `fine`, 3 and 4 of `half`, 5 of `gone` of acme, 6 of `shy`, 7 of `unknown`. */
async function opened() {
  const rig = await openToolRig()
  const make = (name: string, hosts: readonly string[], more = {}) =>
    rig.request('/api/v1/routing/carriers', {
      token: rig.root,
      body: { name, gateways: hosts.map((host) => ({ host })), ...more },
    })
  await make('fine', ['192.0.2.1', '192.0.2.2'])
  await make('half', ['192.0.2.3', '192.0.2.4'])
  await make('gone', ['192.0.2.5'], { tenant: 'acme' })
  await make('shy', ['192.0.2.6'])
  await make('unknown', ['192.0.2.7'])
  const states = new Map([
    [1, probed('active', 9)],
    [2, probed('active', 9)],
    [3, probed('active', 9)],
    [4, probed('probing', 5)],
    [5, probed('probing', 5)],
    [6, probed('probing', 0)],
    [7, probed('active', 9)],
  ])
  Object.assign(rig.engine.trunks, {
    gatewayStatus: (id: number) => states.get(id),
    registrationOf: (id: number) => (id === 5 ? failed : undefined),
  })
  Object.assign(rig.engine.calls, { countByCarrier: (id: number) => id })
  const note = (kind: 'gateway' | 'registration', subject_id: number, tenant_id: number | null) =>
    execute(
      rig.store,
      rig.store.db.insertInto('state_change').values({
        kind,
        subject_id,
        tenant_id,
        name: `${kind} ${subject_id}`,
        observer: 'a',
        from_state: 'active',
        to_state: kind === 'gateway' ? 'probing' : 'failed',
        cause: 'probe' as const,
        reason: 'no answer',
        actor: null,
        at: rig.now() - 60_000,
      }),
    )
  await note('gateway', 4, null)
  await note('gateway', 5, 1)
  await note('registration', 5, null)
  return rig
}

const since = '2025-12-31T23:59:00.000Z'

test('list_trunks puts those in trouble first, and says since when and why', async () => {
  const rig = await opened()
  const { trunks, total } = (await rig.tool('list_trunks')).data<{
    trunks: { name: string }[]
    total: number
  }>()
  expect(total).toBe(5)
  expect(trunks).toMatchObject([
    {
      name: 'gone',
      state: 'down',
      tenant: 'acme',
      active_calls: 3,
      registration: null,
      gateways: [{ state: 'down', since, reason: 'no answer', latency_ms: 3 }],
      last_failure: { at: since, what: 'gateway 5', reason: 'no answer' },
    },
    {
      name: 'unknown',
      state: 'down',
      registration: { state: 'failed', since, last_answer: '403 Forbidden' },
      last_failure: { what: 'registration' },
    },
    {
      name: 'half',
      state: 'degraded',
      gateways: [
        { destination: 'sip:192.0.2.4;transport=udp', state: 'down', since },
        { state: 'up', since: null },
      ],
    },
    { name: 'fine', state: 'up', last_failure: null },
    { name: 'shy', state: 'up', gateways: [{ state: 'unproven' }] },
  ])
  const troubled = await rig.tool('list_trunks', { troubled: true, limit: 1 })
  expect(troubled.data()).toMatchObject({ trunks: [{ name: 'gone' }], total: 3 })
  expect((await rig.tool('list_trunks', { search: 'SHY' })).data()).toMatchObject({ total: 1 })
})
